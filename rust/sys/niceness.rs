// SPDX-License-Identifier: GPL-2.0

//! Niceness of a thread of the kernel, for a part of its work.

use crate::sys::bindings;
use kernel::prelude::*;

/// The earlier niceness of the current thread. The drop, by the same thread, sets it again.
pub(crate) struct EarlierNiceness {
    nice: c_int,
    of_thread: kernel::types::NotThreadSafe,
}

impl EarlierNiceness {
    /// Sets the niceness of the current thread, 0 to 19. May sleep.
    pub(crate) fn replace(nice: u32) -> Self {
        Self {
            // SAFETY: A thread may change its own niceness where it may sleep.
            nice: unsafe { bindings::rtrace_set_nice(nice as c_int) },
            of_thread: kernel::types::NotThreadSafe,
        }
    }
}

impl Drop for EarlierNiceness {
    fn drop(&mut self) {
        // SAFETY: As above.
        unsafe { bindings::rtrace_set_nice(self.nice) };
    }
}
