// SPDX-License-Identifier: GPL-2.0

//! A tracepoint of a module, which comes and goes with that.
//!
//! Who is registered stays so while the module is not loaded: the tracepoint calls them from when it comes,
//! before any of the module's code has run, until it goes, and again the next time.
//!
//! The lock is taken where the kernel tells of modules, in `tracepoint_module_list_mutex`; within it there is
//! nothing but the kernel's `tracepoints_mutex`, which is within that one, too. So who registers handlers may
//! hold whatever other lock.

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
    /// Not 0 while its module is loaded.
    is_there: SharedWord,
}

struct State {
    loaded: Option<Loaded>,
    probes: KVec<Registered>,
}

/// Where it is.
///
/// # Invariants
///
/// The module is loaded, and its tracepoints were not said to go.
struct Loaded {
    module: ModuleId,
    tracepoint: NonNull<bindings::tracepoint>,
}

// SAFETY: Registration has a lock of its own.
unsafe impl Send for Loaded {}

struct Registered {
    probe: TracepointProbe,
    /// Whether the tracepoint calls it: it is there, and there was memory for that.
    is_called: bool,
}

impl ModuleTracepoint {
    /// One that is not there yet, and calls nobody.
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

    /// Its module is loaded. Nothing changes if it is there already, in another module. `ENOMEM`: not all who are
    /// registered are called. May sleep.
    pub(crate) fn comes(&self, found: &FoundTracepoint<'_>) -> Result {
        let mut state = self.state.lock();
        if state.loaded.is_some() {
            return Ok(());
        }
        // INVARIANT: What is found is there; before it goes this is told by `goes`.
        state.loaded = Some(Loaded {
            module: found.module(),
            tracepoint: found.tracepoint(),
        });
        self.is_there.store(1);
        let mut result = Ok(());
        for registered in &mut state.probes {
            // SAFETY: It is there. What else `TracepointProbe::register` asks for, `register` below was promised.
            match unsafe { registered.probe.register(found.tracepoint()) } {
                Ok(()) => registered.is_called = true,
                Err(error) => result = Err(error),
            }
        }
        result
    }

    /// The module goes; nothing changes if this is not its tracepoint. Says whether somebody was called, who may
    /// still run. May sleep.
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
                // SAFETY: By the invariant it was there until now, and its memory is as long as this call.
                unsafe { registered.probe.unregister(loaded.tracepoint) };
                any = true;
            }
        }
        any
    }

    /// Has `probe` called whenever it is there. `ENOMEM`. May sleep.
    ///
    /// # Safety
    ///
    /// As for [`TracepointProbe::register`], but that the tracepoint need not be there.
    pub(super) unsafe fn register(&self, probe: TracepointProbe) -> Result {
        let mut state = self.state.lock();
        state.probes.reserve(1, GFP_KERNEL)?;
        let is_called = match &state.loaded {
            // SAFETY: It is there by the invariant; the rest is the caller's contract.
            Some(loaded) => unsafe { probe.register(loaded.tracepoint) }.map(|()| true)?,
            None => false,
        };
        // There is room.
        Ok(state
            .probes
            .push(Registered { probe, is_called }, GFP_KERNEL)?)
    }

    /// Has what was registered not called any more; it may still run. Returns whether it may be asleep there. May
    /// sleep.
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
            // SAFETY: It is there by the invariant, and calls this.
            (Some(loaded), true) => unsafe { probe.unregister(loaded.tracepoint) },
            _ => false,
        }
    }

    /// Whether it is there, and handlers may sleep there. May sleep.
    pub(super) fn may_sleep(&self) -> bool {
        let state = self.state.lock();
        state.loaded.as_ref().is_some_and(|loaded| {
            // SAFETY: It is there by the invariant.
            unsafe { bindings::rtrace_tracepoint_may_sleep(loaded.tracepoint.as_ptr()) }
        })
    }
}
