// SPDX-License-Identifier: GPL-2.0

//! Times in the form of system calls.

use rustix::event::Timespec;
use std::time::Duration;

/// A duration in the kernel's form.
pub fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: time.subsec_nanos().into(),
    }
}
