// SPDX-License-Identifier: GPL-2.0

//! Functions of the kernel: an event for each call, or, as a graph, events for calls and returns. The events
//! have the names and the meaning of ftrace's.
//!
//! Each session chooses its functions, and has hooks of its own, which exist while somebody records one of the
//! events and there is a function to trace. Without a choice, no function is traced.

mod calls;
mod choice;
pub(super) mod event;
mod hooks;
mod kind;
mod set;

use crate::probe::listed::Removed;
use crate::probe::Probe;
use crate::source::probe_list::{NewProbe, ProbeList};
use crate::sys::functions::unloading::UnloadingWatch;
pub(crate) use choice::TracedFunctions;
use hooks::Hooks;
use kernel::prelude::*;
use kernel::sync::Arc;
use kind::FunctionKind;
pub(crate) use set::FunctionSet;

/// The functions that a session traces, and their hooks.
pub(crate) struct Functions {
    hooks: Arc<Hooks>,
    /// The events, in the order of [`FunctionKind::ALL`].
    events: [Arc<FunctionEvent>; FunctionKind::ALL.len()],
    _unloading: Pin<KBox<UnloadingWatch<Hooks>>>,
}

/// An event in a session.
struct FunctionEvent {
    kind: FunctionKind,
    hooks: Arc<Hooks>,
}

impl Functions {
    /// Traces no function, without probes. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let hooks = Hooks::new()?;
        let event = |kind| {
            let hooks = hooks.clone();
            Arc::new(FunctionEvent { kind, hooks }, GFP_KERNEL)
        };
        let [function, entry, exit] = FunctionKind::ALL.map(event);
        let functions = Self {
            events: [function?, entry?, exit?],
            _unloading: UnloadingWatch::new(hooks.clone())?,
            hooks,
        };
        Ok(Arc::new(functions, GFP_KERNEL)?)
    }

    /// Changes the traced functions: `change` gets the present choice, and edits it. While it looks for
    /// functions, no module is unloaded unnoticed. On failure nothing has changed. May sleep.
    pub(crate) fn choose(&self, change: impl FnOnce(&mut TracedFunctions) -> Result) -> Result {
        self.hooks.choose(change)
    }

    /// Calls `look` with the chosen functions.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&TracedFunctions) -> R) -> R {
        self.hooks.look(look)
    }

    /// Maximum call depth of graphs; 0 for no limit.
    pub(crate) fn max_depth(&self) -> u64 {
        self.hooks.max_depth()
    }

    /// Sets the maximum call depth.
    pub(crate) fn set_max_depth(&self, depth: u32) {
        self.hooks.set_max_depth(depth);
    }

    /// The number of calls that graphs have missed because too many calls of their task had not returned.
    pub(crate) fn missed(&self) -> u64 {
        self.hooks.missed()
    }
}

impl ProbeList for FunctionEvent {
    fn attach(&self, new: NewProbe<'_>) -> Result {
        self.hooks.attach(self.kind, new.probe)
    }

    fn missed(&self) -> u64 {
        match self.kind {
            FunctionKind::Function => 0,
            FunctionKind::GraphEntry | FunctionKind::GraphExit => self.hooks.missed(),
        }
    }

    fn detach(&self, probe: &Probe, removed: &mut Removed) {
        self.hooks.detach(self.kind, probe, removed);
    }
}
