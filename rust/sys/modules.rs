// SPDX-License-Identifier: GPL-2.0

//! Modules that have tracepoints: when they come, and when they go.
//!
//! The kernel tells of them in `tracepoint_module_list_mutex`. Other parts of the kernel take that lock with
//! `event_mutex` held (tprobe events); so nobody who is told may take that one, nor a lock within which
//! somebody takes it.

use crate::sys::bindings;
use crate::sys::trace_event::ModuleTraceEvent;
use core::ffi::c_void;
use core::marker::{PhantomData, PhantomPinned};
use core::ptr::NonNull;
use kernel::error::to_result;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::types::Opaque;

/// Is told of modules with tracepoints. All calls may sleep; see the [module](self) for locks.
pub(crate) trait OnModules: Send + Sync {
    /// A module is there. If it is loaded now, none of its code has run.
    fn comes(&self, module: &Module<'_>);

    /// A module goes; none of its code will run. Says whether there were handlers at its tracepoints: the kernel
    /// then waits until none of them runs.
    fn goes(&self, module: &Module<'_>) -> bool;
}

/// A module with tracepoints, while somebody is told of it.
///
/// # Invariants
///
/// It is there.
pub(crate) struct Module<'a> {
    module: NonNull<bindings::module>,
    lifetime: PhantomData<&'a bindings::module>,
}

/// Tells modules apart that are there at the same time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ModuleId(NonNull<bindings::module>);

// SAFETY: Nothing but the address is used.
unsafe impl Send for ModuleId {}

impl<'a> Module<'a> {
    /// Which it is.
    pub(crate) fn id(&self) -> ModuleId {
        ModuleId(self.module)
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        // SAFETY: By the invariant; it is NUL-terminated.
        let name = unsafe { CStr::from_ptr((&raw const (*self.module.as_ptr()).name).cast()) };
        name.to_str().unwrap_or("")
    }

    /// Whether it was built with the kernel, so that its prototypes are those of the kernel's headers.
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
            // INVARIANT: The module's.
            Some(FoundTracepoint {
                module,
                tracepoint: NonNull::new(tracepoint)?,
                lifetime: PhantomData,
            })
        })
    }
}

/// A tracepoint of a module, while somebody is told of that.
///
/// # Invariants
///
/// It is there, in this module.
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
        // SAFETY: By the invariant. Its name is as long there, and NUL-terminated.
        unsafe { CStr::from_ptr((*self.tracepoint.as_ptr()).name.cast()) }.to_bytes()
    }

    /// What ftrace and perf record of it; [`None`] if that is nothing.
    pub(crate) fn event(&self) -> Option<ModuleTraceEvent<'a>> {
        // SAFETY: By the invariant.
        let call = unsafe {
            bindings::rtrace_module_trace_call(self.module.as_ptr(), self.tracepoint.as_ptr())
        };
        // SAFETY: NULL, or of the module, and as long there.
        NonNull::new(call.cast_mut()).map(|call| unsafe { ModuleTraceEvent::new(call) })
    }
}

/// Has somebody told of modules, also of those that are there already. Dropping it says of all that they go.
#[pin_data(PinnedDrop)]
pub(crate) struct ModuleWatch<T: OnModules + 'static> {
    #[pin]
    block: Opaque<bindings::notifier_block>,
    told: Arc<T>,
    #[pin]
    pinned: PhantomPinned,
}

// SAFETY: The notifier chain has a lock of its own; `T` is Sync.
unsafe impl<T: OnModules> Sync for ModuleWatch<T> {}
// SAFETY: Not bound to a thread.
unsafe impl<T: OnModules> Send for ModuleWatch<T> {}

impl<T: OnModules> ModuleWatch<T> {
    /// Begins. May sleep.
    pub(crate) fn new(told: Arc<T>) -> Result<Pin<KBox<Self>>> {
        let block = bindings::notifier_block {
            notifier_call: Some(Self::callback),
            ..Default::default()
        };
        let watch = KBox::pin_init(
            pin_init!(Self {
                block <- Opaque::ffi_init(|place: *mut bindings::notifier_block| {
                    // SAFETY: `place` is memory for it.
                    unsafe { place.write(block) }
                }),
                told,
                pinned: PhantomPinned,
            }),
            GFP_KERNEL,
        )?;
        // SAFETY: Initialised, and stays where it is until the drop below; if this fails that finds nothing to
        // take off. May sleep here.
        to_result(unsafe { bindings::register_tracepoint_module_notifier(watch.block.get()) })?;
        Ok(watch)
    }

    /// Passes on what the kernel tells.
    ///
    /// # Safety
    ///
    /// For the kernel to call, with the `block` of a `ModuleWatch<T>` and a `struct tp_module`.
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
        // INVARIANT: As long as this call.
        let module = Module {
            module,
            lifetime: PhantomData,
        };
        if state == bindings::module_state_MODULE_STATE_COMING as c_ulong {
            told.comes(&module);
        } else if state == bindings::module_state_MODULE_STATE_GOING as c_ulong
            && told.goes(&module)
        {
            // SAFETY: It is there. May sleep here.
            unsafe { bindings::rtrace_synchronize_module_probes(module.module.as_ptr()) };
        }
        DONE
    }
}

#[pinned_drop]
impl<T: OnModules> PinnedDrop for ModuleWatch<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Registered in `new`; after this nobody is told any more. May sleep here.
        unsafe { bindings::unregister_tracepoint_module_notifier(self.block.get()) };
    }
}
