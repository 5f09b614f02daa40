// SPDX-License-Identifier: GPL-2.0

//! Interrupts.

use super::c_text;
use crate::sys::bindings;
use crate::sys::tracepoint::Arg;
use kernel::types::Opaque;

/// A `struct irqaction`: a handler of an interrupt.
#[repr(transparent)]
pub(crate) struct IrqAction(Opaque<bindings::irqaction>);

// SAFETY: A pointer to a live irqaction.
unsafe impl Arg for &IrqAction {
    type Raw = *mut bindings::irqaction;
}

impl IrqAction {
    /// The name with which it was requested; empty if there is none.
    #[inline(always)]
    pub(crate) fn name(&self) -> &[u8] {
        // SAFETY: The irqaction is live. Its name, if it has one, lives as long.
        unsafe { c_text((*self.0.get()).name.cast()) }
    }
}
