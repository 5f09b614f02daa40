// SPDX-License-Identifier: GPL-2.0

//! Notification that a module's code is freed: all of it at the unloading, and the code for its initialisation
//! alone once the initialisation is over.

use crate::sys::bindings;
use kernel::error::to_result;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::types::Opaque;

/// Receives the notifications.
pub(crate) trait Unloading: Send + Sync + 'static {
    /// Handles the end of a module: its code is freed after this returns. May sleep; must not load or unload a
    /// module.
    fn unloading(&self, code: &GoingCode<'_>);

    /// Handles the end of a module's initialisation: its initialisation code is freed after this returns.
    fn begun(&self, code: &GoingCode<'_>);
}

/// Code of a module that is about to be freed.
pub(crate) struct GoingCode<'a> {
    module: &'a Opaque<bindings::module>,
    only_init: bool,
}

impl GoingCode<'_> {
    /// Whether the code at `address` is freed.
    pub(crate) fn has(&self, address: usize) -> bool {
        // SAFETY: The module lives.
        unsafe { bindings::rtrace_module_has(self.module.get(), address, self.only_init) }
    }
}

/// Notifies a `T` from creation until dropped.
///
/// # Invariants
///
/// The block is registered, from creation until the drop.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub(crate) struct UnloadingWatch<T: Unloading> {
    /// First field, so that it has the same address as the watch.
    #[pin]
    block: Opaque<bindings::notifier_block>,
    target: Arc<T>,
}

// SAFETY: The kernel's list has its own lock; the target is `Send` and `Sync`.
unsafe impl<T: Unloading> Send for UnloadingWatch<T> {}
// SAFETY: As above.
unsafe impl<T: Unloading> Sync for UnloadingWatch<T> {}

impl<T: Unloading> UnloadingWatch<T> {
    /// Notifies `target` from now on. May sleep.
    pub(crate) fn new(target: Arc<T>) -> Result<Pin<KBox<Self>>> {
        let block = bindings::notifier_block {
            notifier_call: Some(notify::<T>),
            ..Default::default()
        };
        let watch = KBox::pin(
            Self {
                block: Opaque::new(block),
                target,
            },
            GFP_KERNEL,
        )?;
        // SAFETY: The block is pinned, and unregistered when the watch is dropped.
        // INVARIANT: The block is registered here. The list accepts each block that it does not have.
        to_result(unsafe { bindings::register_module_notifier(watch.block.get()) })?;
        Ok(watch)
    }
}

#[pinned_drop]
impl<T: Unloading> PinnedDrop for UnloadingWatch<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the invariant the block is registered. The call waits until no CPU runs `notify`.
        unsafe { bindings::unregister_module_notifier(self.block.get()) };
    }
}

/// # Safety
///
/// Only the kernel calls this, with the block of a live `UnloadingWatch<T>` and a live module.
unsafe extern "C" fn notify<T: Unloading>(
    block: *mut bindings::notifier_block,
    state: c_ulong,
    module: *mut c_void,
) -> c_int {
    // SAFETY: By the contract. The block is the first field. No code has a mutable reference to either.
    let (target, module) = unsafe {
        let watch = block.cast::<UnloadingWatch<T>>();
        (
            &(*watch).target,
            &*module.cast::<Opaque<bindings::module>>(),
        )
    };
    let going = |only_init| GoingCode { module, only_init };
    // A module is live before the kernel frees its initialisation code.
    if state == bindings::module_state_MODULE_STATE_LIVE as c_ulong {
        target.begun(&going(true));
    } else if state == bindings::module_state_MODULE_STATE_GOING as c_ulong {
        target.unloading(&going(false));
    }
    0
}
