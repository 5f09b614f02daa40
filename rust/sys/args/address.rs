// SPDX-License-Identifier: GPL-2.0

//! Addresses that are shown and not followed.

use crate::sys::tracepoint::Arg;
use kernel::ffi::c_void;

/// A `void *` that is only shown.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Address(*mut c_void);

// SAFETY: Both are the same pointer. No code reads through it.
unsafe impl Arg for Address {
    type Raw = *mut c_void;
}

impl Address {
    /// The address.
    #[inline(always)]
    pub(crate) fn value(self) -> u64 {
        self.0.addr() as u64
    }
}
