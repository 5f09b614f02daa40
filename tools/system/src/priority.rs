// SPDX-License-Identifier: GPL-2.0

//! The priority of the consumer among the tasks that it observes.

use rustix::process::{getpid, getsid, setpriority_process};
use std::fs;

/// The most urgent nice value.
const MOST_URGENT: i32 = -20;

/// Gives the calling thread a higher priority than ordinary threads. Among hundreds of ready threads, a thread of the
/// same priority would run too late to empty the buffers that all of them fill.
///
/// Without the permission the thread keeps its priority. That costs events, which are counted.
pub fn raise() {
    let _ = setpriority_process(None, MOST_URGENT);
    // If the kernel groups tasks by session (sched_autogroup), a nice value counts only within the session. A daemon
    // has a session of its own, and that session's value counts against the others. 0: the process is in another pid
    // namespace.
    if getsid(None) == Ok(getpid()) {
        let _ = fs::write("/proc/self/autogroup", MOST_URGENT.to_string());
    }
}
