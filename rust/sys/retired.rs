// SPDX-License-Identifier: GPL-2.0

//! Deferred freeing of values that handlers use while they may sleep in a page fault.
//!
//! The kernel calls such handlers as readers of RCU tasks trace. Another process can keep them asleep for ever, so
//! only the end of the module waits for them.

use crate::sys::bindings;
use kernel::prelude::*;
use kernel::types::Opaque;

/// The kind of the handlers that used a retired value.
#[derive(PartialEq, Eq)]
pub(super) enum UsedBy {
    Tracepoint,
    Uprobe,
}

/// A `T` that handlers use until it is [retired](Self::retire). After that, handlers that already run may use
/// it until they return.
#[repr(C)]
pub(super) struct Retirable<T> {
    /// First field, so that it has the same address as the whole.
    node: Opaque<bindings::rtrace_retired>,
    value: T,
}

// SAFETY: Only `retire`, which owns the object, uses the node.
unsafe impl<T: Send> Send for Retirable<T> {}
// SAFETY: As above. A shared reference gives access to the value only.
unsafe impl<T: Sync> Sync for Retirable<T> {}

impl<T: Send + 'static> Retirable<T> {
    /// Stores `value`. May sleep.
    pub(super) fn new(value: T) -> Result<KBox<Self>> {
        let node = Opaque::uninit();
        Ok(KBox::new(Self { node, value }, GFP_KERNEL)?)
    }

    /// The value.
    pub(super) fn value(&self) -> &T {
        &self.value
    }

    /// Drops the value in a thread, after each handler that runs now has returned. The handlers must be
    /// unregistered. Process context.
    pub(super) fn retire(self: KBox<Self>, handlers: UsedBy) {
        let this = KBox::into_raw(self);
        let of_uprobe = handlers == UsedBy::Uprobe;
        // SAFETY: The node is at the box's address, and only this uses it. `free` takes over the box.
        unsafe { bindings::rtrace_retire(this.cast(), Some(free::<T>), of_uprobe) };
    }
}

/// # Safety
///
/// Only the kernel calls this, once, with the pointer that [`Retirable::retire`] got from its box.
unsafe extern "C" fn free<T>(node: *mut bindings::rtrace_retired) {
    const { assert!(core::mem::offset_of!(Retirable<T>, node) == 0) };
    // SAFETY: By the contract. The node is the first field.
    drop(unsafe { KBox::from_raw(node.cast::<Retirable<T>>()) });
}

/// Prepares for the registration of a handler that may sleep, at a tracepoint or elsewhere. `EAGAIN`: too many
/// retired objects are not freed yet. May sleep, for some seconds at most.
pub(super) fn settle(at_tracepoint: bool) -> Result {
    // SAFETY: This context may sleep.
    if unsafe { bindings::rtrace_settle(at_tracepoint) } {
        Ok(())
    } else {
        Err(EAGAIN)
    }
}

/// Waits until all retired objects are freed, or until one second after the last retirement. May sleep.
pub(super) fn wait_a_second() {
    // SAFETY: This context may sleep.
    unsafe { bindings::rtrace_wait_a_second() };
}

/// Waits until all retired objects are freed. For the end of the module, when no handler is registered any
/// more. May sleep.
pub(crate) fn wait() {
    // SAFETY: This context may sleep.
    unsafe { bindings::rtrace_wait_retired() };
}
