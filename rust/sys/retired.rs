// SPDX-License-Identifier: GPL-2.0

//! Deferred freeing of values that handlers use while they may sleep in a page fault.
//!
//! The kernel calls such handlers as readers of RCU tasks trace. Another process can keep them asleep for ever, so
//! only the end of the module waits for them.

use crate::sys::bindings;
use kernel::prelude::*;
use kernel::types::Opaque;

/// A `T` that handlers use until it is [retired](Self::retire), and after that until the last of them has returned.
#[repr(C)]
pub(super) struct Retirable<T> {
    /// First, so that its address is that of all.
    node: Opaque<bindings::rtrace_retired>,
    value: T,
}

// SAFETY: The node is used by `retire` alone, which owns it.
unsafe impl<T: Send> Send for Retirable<T> {}
// SAFETY: As above; of a shared one only the value can be had.
unsafe impl<T: Sync> Sync for Retirable<T> {}

impl<T: Send + 'static> Retirable<T> {
    /// Keeps `value`. May sleep.
    pub(super) fn new(value: T) -> Result<KBox<Self>> {
        let node = Opaque::uninit();
        Ok(KBox::new(Self { node, value }, GFP_KERNEL)?)
    }

    /// The value.
    pub(super) fn value(&self) -> &T {
        &self.value
    }

    /// Has it dropped, in a thread, when no handler runs any more that runs now. The handlers are
    /// unregistered. Process context.
    pub(super) fn retire(self: KBox<Self>) {
        let this = KBox::into_raw(self);
        // SAFETY: The node is at the box's address, and is not used but by this. `free` takes over the box.
        unsafe { bindings::rtrace_retire(this.cast(), Some(free::<T>)) };
    }
}

/// # Safety
///
/// For the kernel to call once, with what [`Retirable::retire`] has taken out of its box.
unsafe extern "C" fn free<T>(node: *mut bindings::rtrace_retired) {
    const { assert!(core::mem::offset_of!(Retirable<T>, node) == 0) };
    // SAFETY: By the contract; the node is the first field.
    drop(unsafe { KBox::from_raw(node.cast::<Retirable<T>>()) });
}

/// Makes ready to register a handler that may sleep, at a tracepoint or elsewhere. `EAGAIN`: too much is retired
/// and not freed. May sleep, for some seconds at most.
pub(super) fn settle(at_tracepoint: bool) -> Result {
    // SAFETY: May sleep here.
    if unsafe { bindings::rtrace_settle(at_tracepoint) } {
        Ok(())
    } else {
        Err(EAGAIN)
    }
}

/// Waits until all is freed, or was retired a second ago. May sleep.
pub(super) fn wait_a_second() {
    // SAFETY: May sleep here.
    unsafe { bindings::rtrace_wait_a_second() };
}

/// Waits until all is freed that was retired. For the end of the module: no handler is registered any more. May sleep.
pub(crate) fn wait() {
    // SAFETY: May sleep here.
    unsafe { bindings::rtrace_wait_retired() };
}
