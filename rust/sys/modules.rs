// SPDX-License-Identifier: GPL-2.0

//! Notification of the loading and unloading of modules with tracepoints.
//!
//! The kernel calls the notifier with `tracepoint_module_list_mutex` held. Other parts of the kernel take that
//! lock with `event_mutex` held (tprobe events). So a notified object must not take `event_mutex`, nor any lock
//! within which other code takes `event_mutex`.

use crate::sys::bindings;
use crate::sys::trace_event::ModuleTraceEvent;
use core::ffi::c_void;
use core::marker::{PhantomData, PhantomPinned};
use core::ptr::NonNull;
use kernel::error::to_result;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::types::Opaque;

/// Receives the notifications. All calls may sleep; the [module](self) has the rules for locks.
pub(crate) trait OnModules: Send + Sync {
    /// Handles a module with tracepoints. If it is being loaded, none of its code has run.
    fn comes(&self, module: &Module<'_>);

    /// Handles the end of a module: none of its code will run. Returns whether handlers were attached to its
    /// tracepoints. If so, the caller waits until none of them runs.
    fn goes(&self, module: &Module<'_>) -> bool;
}

/// A module with tracepoints, during a notification.
///
/// # Invariants
///
/// The module is in memory.
pub(crate) struct Module<'a> {
    module: NonNull<bindings::module>,
    lifetime: PhantomData<&'a bindings::module>,
}

/// Identity of a module among all modules that are loaded at the same time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ModuleId(NonNull<bindings::module>);

// SAFETY: Only the address is used.
unsafe impl Send for ModuleId {}

impl<'a> Module<'a> {
    /// The module's identity.
    pub(crate) fn id(&self) -> ModuleId {
        ModuleId(self.module)
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        // SAFETY: By the invariant. The name is NUL-terminated.
        let name = unsafe { CStr::from_ptr((&raw const (*self.module.as_ptr()).name).cast()) };
        name.to_str().unwrap_or("")
    }

    /// Whether the module was built with the kernel. If so, its prototypes are those of the kernel's headers.
    pub(crate) fn is_of_kernel(&self) -> bool {
        // SAFETY: By the invariant.
        unsafe { bindings::rtrace_module_is_of_kernel(self.module.as_ptr()) }
    }

    /// Its tracepoints.
    pub(crate) fn tracepoints(&self) -> impl Iterator<Item = FoundTracepoint<'a>> {
        let module = self.module;
        (0..).map_while(move |at| {
            // SAFETY: By the invariant.
            let tracepoint = unsafe { bindings::rtrace_module_tracepoint(module.as_ptr(), at) };
            // INVARIANT: The tracepoint belongs to the module.
            Some(FoundTracepoint {
                module,
                tracepoint: NonNull::new(tracepoint)?,
                lifetime: PhantomData,
            })
        })
    }
}

/// A tracepoint of a module, during a notification.
///
/// # Invariants
///
/// The tracepoint is in memory, in this module.
pub(crate) struct FoundTracepoint<'a> {
    module: NonNull<bindings::module>,
    tracepoint: NonNull<bindings::tracepoint>,
    lifetime: PhantomData<&'a bindings::module>,
}

impl<'a> FoundTracepoint<'a> {
    /// The module.
    pub(super) fn module(&self) -> ModuleId {
        ModuleId(self.module)
    }

    pub(super) fn tracepoint(&self) -> NonNull<bindings::tracepoint> {
        self.tracepoint
    }

    /// Its name.
    pub(crate) fn name(&self) -> &'a [u8] {
        // SAFETY: By the invariant. The name lives as long as the tracepoint, and is NUL-terminated.
        unsafe { CStr::from_ptr((*self.tracepoint.as_ptr()).name.cast()) }.to_bytes()
    }

    /// Event that ftrace and perf record at the tracepoint; [`None`] if there is none.
    pub(crate) fn event(&self) -> Option<ModuleTraceEvent<'a>> {
        // SAFETY: By the invariant.
        let call = unsafe {
            bindings::rtrace_module_trace_call(self.module.as_ptr(), self.tracepoint.as_ptr())
        };
        // SAFETY: The pointer is NULL, or to an object of the module that lives as long.
        NonNull::new(call.cast_mut()).map(|call| unsafe { ModuleTraceEvent::new(call) })
    }
}

/// Notifies an object of all modules with tracepoints, including those that are already loaded. The drop
/// reports each of them as unloaded.
#[pin_data(PinnedDrop)]
pub(crate) struct ModuleWatch<T: OnModules + 'static> {
    #[pin]
    block: Opaque<bindings::notifier_block>,
    told: Arc<T>,
    #[pin]
    pinned: PhantomPinned,
}

// SAFETY: The notifier chain has its own lock; `T` is Sync.
unsafe impl<T: OnModules> Sync for ModuleWatch<T> {}
// SAFETY: Not bound to a thread.
unsafe impl<T: OnModules> Send for ModuleWatch<T> {}

impl<T: OnModules> ModuleWatch<T> {
    /// Starts the notifications. May sleep.
    pub(crate) fn new(told: Arc<T>) -> Result<Pin<KBox<Self>>> {
        let block = bindings::notifier_block {
            notifier_call: Some(Self::callback),
            ..Default::default()
        };
        let watch = KBox::pin_init(
            pin_init!(Self {
                block <- Opaque::ffi_init(|place: *mut bindings::notifier_block| {
                    // SAFETY: `place` is memory for the block.
                    unsafe { place.write(block) }
                }),
                told,
                pinned: PhantomPinned,
            }),
            GFP_KERNEL,
        )?;
        // SAFETY: The block is initialised. It stays at its address until the drop below. If the call fails,
        // that drop finds no block to remove. This context may sleep.
        to_result(unsafe { bindings::register_tracepoint_module_notifier(watch.block.get()) })?;
        Ok(watch)
    }

    /// Forwards a notification of the kernel.
    ///
    /// # Safety
    ///
    /// Only the kernel calls this, with the `block` of a `ModuleWatch<T>` and a `struct tp_module`.
    unsafe extern "C" fn callback(
        block: *mut bindings::notifier_block,
        state: c_ulong,
        module: *mut c_void,
    ) -> c_int {
        const DONE: c_int = 0;
        // SAFETY: The caller's contract; an Opaque is transparent.
        let told = unsafe {
            let this = kernel::container_of!(Opaque::cast_from(block), Self, block);
            &(*this).told
        };
        // SAFETY: The caller's contract.
        let module = unsafe { (*module.cast::<bindings::tp_module>()).mod_ };
        let Some(module) = NonNull::new(module) else {
            return DONE;
        };
        // INVARIANT: The module stays in memory during this call.
        let module = Module {
            module,
            lifetime: PhantomData,
        };
        if state == bindings::module_state_MODULE_STATE_COMING as c_ulong {
            told.comes(&module);
        } else if state == bindings::module_state_MODULE_STATE_GOING as c_ulong
            && told.goes(&module)
        {
            // SAFETY: The module is in memory. This context may sleep.
            unsafe { bindings::rtrace_synchronize_module_probes(module.module.as_ptr()) };
        }
        DONE
    }
}

#[pinned_drop]
impl<T: OnModules> PinnedDrop for ModuleWatch<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: `new` has registered the block. After this call no notification runs. This context may sleep.
        unsafe { bindings::unregister_tracepoint_module_notifier(self.block.get()) };
    }
}
