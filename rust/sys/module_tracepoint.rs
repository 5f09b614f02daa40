// SPDX-License-Identifier: GPL-2.0

//! A tracepoint of a module, which exists while the module is loaded.
//!
//! Handlers stay registered while the module is not loaded. The tracepoint calls them from the module's
//! loading, before any of its code has run, until its unloading, and again each time it is loaded.
//!
//! Lock order: the kernel's module notifier, which holds `tracepoint_module_list_mutex`, takes the lock here.
//! Within the lock only the kernel's `tracepoints_mutex` is taken, which also nests within
//! `tracepoint_module_list_mutex`. So a caller that registers a handler may hold any other lock.

use crate::arch::word::SharedWord;
use crate::sys::bindings;
use crate::sys::modules::{FoundTracepoint, Module, ModuleId};
use crate::sys::tracepoint::TracepointProbe;
use core::ptr::NonNull;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// A tracepoint of a module, loaded or not.
#[pin_data]
pub(crate) struct ModuleTracepoint {
    #[pin]
    state: Mutex<State>,
    /// Non-zero while its module is loaded.
    is_there: SharedWord,
}

struct State {
    loaded: Option<Loaded>,
    probes: KVec<Registered>,
}

/// A tracepoint in memory.
///
/// # Invariants
///
/// The module is loaded, and the kernel has not announced the end of its tracepoints.
struct Loaded {
    module: ModuleId,
    tracepoint: NonNull<bindings::tracepoint>,
}

// SAFETY: Registration at a tracepoint has its own lock.
unsafe impl Send for Loaded {}

struct Registered {
    probe: TracepointProbe,
    /// Whether the tracepoint calls the probe: the module is loaded, and there was enough memory.
    is_called: bool,
}

impl ModuleTracepoint {
    /// Creates a tracepoint that is not loaded and has no handlers.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let state = State {
            loaded: None,
            probes: KVec::new(),
        };
        Arc::pin_init(
            pin_init!(Self {
                state <- new_mutex!(state),
                is_there: SharedWord::new(0),
            }),
            GFP_KERNEL,
        )
    }

    /// Whether its module is loaded. Any context.
    pub(crate) fn is_there(&self) -> bool {
        self.is_there.load() != 0
    }

    /// Attaches the registered handlers to the tracepoint of a module that is being loaded. Does nothing if
    /// another loaded module has the tracepoint already. `ENOMEM`: some handlers are not attached. May sleep.
    pub(crate) fn comes(&self, found: &FoundTracepoint<'_>) -> Result {
        let mut state = self.state.lock();
        if state.loaded.is_some() {
            return Ok(());
        }
        // INVARIANT: The found tracepoint is loaded. `goes` is called before its end.
        state.loaded = Some(Loaded {
            module: found.module(),
            tracepoint: found.tracepoint(),
        });
        self.is_there.store(1);
        let mut result = Ok(());
        for registered in &mut state.probes {
            // SAFETY: The tracepoint is loaded. The other obligations of `TracepointProbe::register` are those
            // of `register` below, whose caller has met them.
            match unsafe { registered.probe.register(found.tracepoint()) } {
                Ok(()) => registered.is_called = true,
                Err(error) => result = Err(error),
            }
        }
        result
    }

    /// Detaches the handlers before the unloading of `module`. Does nothing if the tracepoint is not this
    /// module's. Returns whether a handler was attached; it may still run. May sleep.
    pub(crate) fn goes(&self, module: &Module<'_>) -> bool {
        let mut state = self.state.lock();
        let is_its = |loaded: &mut Loaded| loaded.module == module.id();
        let Some(loaded) = state.loaded.take_if(is_its) else {
            return false;
        };
        self.is_there.store(0);
        let mut any = false;
        for registered in &mut state.probes {
            if core::mem::take(&mut registered.is_called) {
                // SAFETY: By the invariant the tracepoint was loaded until now. Its memory stays during this
                // call.
                unsafe { registered.probe.unregister(loaded.tracepoint) };
                any = true;
            }
        }
        any
    }

    /// Registers `probe`: the tracepoint calls it whenever it is loaded. Error: `ENOMEM`. May sleep.
    ///
    /// # Safety
    ///
    /// As for [`TracepointProbe::register`], except that the tracepoint need not be loaded.
    pub(super) unsafe fn register(&self, probe: TracepointProbe) -> Result {
        let mut state = self.state.lock();
        state.probes.reserve(1, GFP_KERNEL)?;
        let is_called = match &state.loaded {
            // SAFETY: By the invariant the tracepoint is loaded. The rest is the caller's contract.
            Some(loaded) => unsafe { probe.register(loaded.tracepoint) }.map(|()| true)?,
            None => false,
        };
        // The room was reserved above.
        Ok(state
            .probes
            .push(Registered { probe, is_called }, GFP_KERNEL)?)
    }

    /// Unregisters `probe`, which may still run. Returns whether it may be asleep in its handler. May sleep.
    pub(super) fn unregister(&self, probe: TracepointProbe) -> bool {
        let mut state = self.state.lock();
        let mut probes = state.probes.iter();
        let Some(at) = probes.position(|registered| registered.probe == probe) else {
            return false;
        };
        let Ok(registered) = state.probes.remove(at) else {
            return false;
        };
        match (&state.loaded, registered.is_called) {
            // SAFETY: By the invariant the tracepoint is loaded, and it calls the probe.
            (Some(loaded), true) => unsafe { probe.unregister(loaded.tracepoint) },
            _ => false,
        }
    }

    /// Whether the tracepoint is loaded and its handlers may sleep. May sleep.
    pub(super) fn may_sleep(&self) -> bool {
        let state = self.state.lock();
        state.loaded.as_ref().is_some_and(|loaded| {
            // SAFETY: By the invariant the tracepoint is loaded.
            unsafe { bindings::rtrace_tracepoint_may_sleep(loaded.tracepoint.as_ptr()) }
        })
    }
}
