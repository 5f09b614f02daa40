// SPDX-License-Identifier: GPL-2.0

//! Being told that code of a module goes: all of it when the module is unloaded, and what is for its
//! beginning alone once it has begun.

use crate::sys::bindings;
use kernel::error::to_result;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::types::Opaque;

/// What is told.
pub(crate) trait Unloading: Send + Sync + 'static {
    /// The module has ended, and its code goes when this returns. May sleep; loads and unloads no
    /// module.
    fn unloading(&self, code: &GoingCode<'_>);

    /// The same of what was for the module's beginning alone.
    fn begun(&self, code: &GoingCode<'_>);
}

/// Code of a module that goes.
pub(crate) struct GoingCode<'a> {
    module: &'a Opaque<bindings::module>,
    only_init: bool,
}

impl GoingCode<'_> {
    /// Whether what is at an address goes.
    pub(crate) fn has(&self, address: usize) -> bool {
        // SAFETY: The module lives.
        unsafe { bindings::rtrace_module_has(self.module.get(), address, self.only_init) }
    }
}

/// Tells a `T` as long as this lives.
///
/// # Invariants
///
/// It is registered, from when it is made until it is dropped.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub(crate) struct UnloadingWatch<T: Unloading> {
    /// First, so that its address is that of all.
    #[pin]
    block: Opaque<bindings::notifier_block>,
    target: Arc<T>,
}

// SAFETY: The kernel's list has a lock of its own; the target is `Send` and `Sync`.
unsafe impl<T: Unloading> Send for UnloadingWatch<T> {}
// SAFETY: As above.
unsafe impl<T: Unloading> Sync for UnloadingWatch<T> {}

impl<T: Unloading> UnloadingWatch<T> {
    /// Tells it from now on. May sleep.
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
        // SAFETY: Pinned, and unregistered when it is dropped.
        // INVARIANT: Registered here; the list takes every block but one that it has.
        to_result(unsafe { bindings::register_module_notifier(watch.block.get()) })?;
        Ok(watch)
    }
}

#[pinned_drop]
impl<T: Unloading> PinnedDrop for UnloadingWatch<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the invariant it is registered. Waits until nobody runs it.
        unsafe { bindings::unregister_module_notifier(self.block.get()) };
    }
}

/// # Safety
///
/// For the kernel to call, with the block of an `UnloadingWatch<T>` that lives and a live module.
unsafe extern "C" fn notify<T: Unloading>(
    block: *mut bindings::notifier_block,
    state: c_ulong,
    module: *mut c_void,
) -> c_int {
    // SAFETY: By the contract; the block is the first field. Nobody has either mutably.
    let (target, module) = unsafe {
        let watch = block.cast::<UnloadingWatch<T>>();
        (
            &(*watch).target,
            &*module.cast::<Opaque<bindings::module>>(),
        )
    };
    let going = |only_init| GoingCode { module, only_init };
    // A module is live before the kernel frees what was for its beginning.
    if state == bindings::module_state_MODULE_STATE_LIVE as c_ulong {
        target.begun(&going(true));
    } else if state == bindings::module_state_MODULE_STATE_GOING as c_ulong {
        target.unloading(&going(false));
    }
    0
}
