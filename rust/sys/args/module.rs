// SPDX-License-Identifier: GPL-2.0

//! Modules.

use super::c_text;
use crate::sys::bindings;
use crate::sys::tracepoint::Arg;
use kernel::types::Opaque;

/// A `struct module`.
#[repr(transparent)]
pub(crate) struct ModuleArg(Opaque<bindings::module>);

// SAFETY: A pointer to a live module; tracepoints that pass one pass no NULL.
unsafe impl Arg for &ModuleArg {
    type Raw = *mut bindings::module;
}

impl ModuleArg {
    /// Its name.
    #[inline(always)]
    pub(crate) fn name(&self) -> &[u8] {
        // SAFETY: A live module; its name does not change.
        unsafe { c_text((&raw const (*self.0.get()).name).cast()) }
    }

    /// Why it taints the kernel (`TAINT_...`, a bit each).
    #[inline(always)]
    pub(crate) fn taints(&self) -> u32 {
        // SAFETY: A live module; read once.
        unsafe { (&raw const (*self.0.get()).taints).read_volatile() as u32 }
    }

    /// How many hold it.
    #[inline(always)]
    pub(crate) fn references(&self) -> i32 {
        // SAFETY: A live module; read once.
        unsafe { (&raw const (*self.0.get()).refcnt.counter).read_volatile() }
    }
}
