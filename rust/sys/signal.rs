// SPDX-License-Identifier: GPL-2.0

//! Signals of the calling thread, and the end of long work.

use crate::sys::bindings;
use kernel::prelude::*;

/// `EINTR` if the calling thread has a signal to handle.
pub(crate) fn check() -> Result {
    if kernel::current!().signal_pending() {
        return Err(EINTR);
    }
    Ok(())
}

/// Lets other threads run. A loop whose length a user chooses calls this in each round. `EINTR`: the calling thread has
/// a fatal signal, so the work should end, whatever its result. May sleep.
pub(crate) fn go_on() -> Result {
    // SAFETY: This context may sleep.
    match unsafe { bindings::rtrace_yield() } {
        true => Err(EINTR),
        false => Ok(()),
    }
}
