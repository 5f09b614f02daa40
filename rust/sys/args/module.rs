// SPDX-License-Identifier: GPL-2.0

//! Modules.

use super::c_text;
use crate::sys::bindings;
use crate::sys::tracepoint::Arg;
use kernel::types::Opaque;

/// A `struct module`.
#[repr(transparent)]
pub(crate) struct ModuleArg(Opaque<bindings::module>);

// SAFETY: The pointer is to a live module. No tracepoint passes NULL for it.
unsafe impl Arg for &ModuleArg {
    type Raw = *mut bindings::module;
}

impl ModuleArg {
    /// Its name.
    #[inline(always)]
    pub(crate) fn name(&self) -> &[u8] {
        // SAFETY: The module is live, and its name does not change.
        unsafe { c_text((&raw const (*self.0.get()).name).cast()) }
    }

    /// Reasons why the module taints the kernel (`TAINT_...`, one bit each).
    #[inline(always)]
    pub(crate) fn taints(&self) -> u32 {
        // SAFETY: The module is live. The field is read once.
        unsafe { (&raw const (*self.0.get()).taints).read_volatile() as u32 }
    }

    /// Number of references to the module.
    #[inline(always)]
    pub(crate) fn references(&self) -> i32 {
        // SAFETY: The module is live. The field is read once.
        unsafe { (&raw const (*self.0.get()).refcnt.counter).read_volatile() }
    }
}
