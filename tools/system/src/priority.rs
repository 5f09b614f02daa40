// SPDX-License-Identifier: GPL-2.0

//! The consumer's place among the tasks that it observes.

use rustix::process::{getpid, getsid, setpriority_process};
use std::fs;

/// The most urgent nice value.
const MOST_URGENT: i32 = -20;

/// Puts the calling thread before the ordinary ones. Where hundreds of them are ready to run,
/// one in their midst comes too late to empty the buffers that they all fill.
///
/// Without the right to do so it stays where it is: that costs events, which are counted.
pub fn raise() {
    let _ = setpriority_process(None, MOST_URGENT);
    // Where the kernel groups tasks by session (sched_autogroup), a nice value counts within
    // the session only. A daemon has one for itself, and the session's own value is what
    // counts against the others. (0: it is one of another pid namespace.)
    if getsid(None) == Ok(getpid()) {
        let _ = fs::write("/proc/self/autogroup", MOST_URGENT.to_string());
    }
}
