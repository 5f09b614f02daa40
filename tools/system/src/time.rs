// SPDX-License-Identifier: GPL-2.0

//! Times in the form of system calls and of file names.

use jiff::Timestamp;
use rustix::event::Timespec;
use rustix::time::{clock_gettime, ClockId};
use std::time::Duration;

/// A duration in the kernel's form.
pub fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: time.subsec_nanos().into(),
    }
}

/// The time of the day clock, in nanoseconds since the epoch, at a time of the monotonic clock. Changes of the clock since
/// then count.
pub fn since_epoch(monotonic: u64) -> i64 {
    let now = |clock| {
        let now = clock_gettime(clock);
        now.tv_sec * 1_000_000_000 + now.tv_nsec
    };
    let offset = now(ClockId::Realtime) - now(ClockId::Monotonic);
    offset.saturating_add_unsigned(monotonic)
}

/// This moment as `YYYYMMDD-HHMMSS` in UTC, for names of files.
pub fn name_of_now() -> String {
    Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string()
}
