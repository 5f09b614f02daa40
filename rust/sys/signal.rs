// SPDX-License-Identifier: GPL-2.0

//! Signals of the calling thread.

use crate::sys::bindings;
use kernel::prelude::*;

/// `EINTR` if the calling thread has a signal to handle.
pub(crate) fn check() -> Result {
    if kernel::current!().signal_pending() {
        return Err(EINTR);
    }
    Ok(())
}

/// Whether the calling thread has a fatal signal: long work should end, whatever its result.
pub(crate) fn is_killed() -> bool {
    // SAFETY: Reads the current task.
    unsafe { bindings::rtrace_is_killed() }
}
