// SPDX-License-Identifier: GPL-2.0

//! Times in the form of system calls and of file names.

use jiff::Timestamp;
use rustix::event::Timespec;
use std::time::Duration;

/// A duration in the kernel's form.
pub fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: time.subsec_nanos().into(),
    }
}

/// This moment as `YYYYMMDD-HHMMSS` in UTC, for names of files.
pub fn name_of_now() -> String {
    Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string()
}
