// SPDX-License-Identifier: GPL-2.0

//! Times as system calls take them.

use rustix::event::Timespec;
use std::time::Duration;

/// A duration as the kernel takes it.
pub fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: time.subsec_nanos().into(),
    }
}
