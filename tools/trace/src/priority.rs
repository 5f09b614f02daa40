// SPDX-License-Identifier: GPL-2.0

//! The consumer's place among the tasks that it observes.

use rustix::process::setpriority_process;

/// The most urgent nice value.
const MOST_URGENT: i32 = -20;

/// Puts the calling thread before the ordinary ones. Where hundreds of them are ready to run,
/// one in their midst comes too late to empty the buffers that they all fill.
///
/// Without the right to do so it stays where it is: that costs events, which are counted.
pub fn raise() {
    let _ = setpriority_process(None, MOST_URGENT);
}
