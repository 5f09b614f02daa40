// SPDX-License-Identifier: GPL-2.0

//! Functions of the kernel: that one is called, and, as a graph, calls and returns. The events are
//! called as ftrace's, and mean the same.
//!
//! Which functions is a matter of the session: each has hooks of its own, which are on while somebody
//! records one of the events and there is a function to be traced. None is, where none was chosen.

mod calls;
mod choice;
pub(super) mod event;
mod hooks;
mod kind;
mod set;

use crate::probe::Probe;
use crate::source::probe_list::{NewProbe, ProbeList};
use crate::sys::functions::unloading::UnloadingWatch;
pub(crate) use choice::TracedFunctions;
use hooks::Hooks;
use kernel::prelude::*;
use kernel::sync::Arc;
use kind::FunctionKind;
pub(crate) use set::FunctionSet;

/// The functions that a session traces, and what has them traced.
pub(crate) struct Functions {
    hooks: Arc<Hooks>,
    /// By [`FunctionKind::ALL`].
    events: [Arc<FunctionEvent>; FunctionKind::ALL.len()],
    _unloading: Pin<KBox<UnloadingWatch<Hooks>>>,
}

/// An event, in a session.
struct FunctionEvent {
    kind: FunctionKind,
    hooks: Arc<Hooks>,
}

impl Functions {
    /// None, and nobody records them. May sleep.
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

    /// Has other functions traced from now on: what `change` makes of those that are. While it looks
    /// for functions no module goes unseen. On failure nothing has changed. May sleep.
    pub(crate) fn choose(&self, change: impl FnOnce(&mut TracedFunctions) -> Result) -> Result {
        self.hooks.choose(change)
    }

    /// Calls `look` with what is chosen.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&TracedFunctions) -> R) -> R {
        self.hooks.look(look)
    }

    /// So many calls in each other are traced in a graph; 0: all.
    pub(crate) fn max_depth(&self) -> u64 {
        self.hooks.max_depth()
    }

    /// Has so many traced.
    pub(crate) fn set_max_depth(&self, depth: u32) {
        self.hooks.set_max_depth(depth);
    }

    /// How many calls were not seen in graphs, for so many of their task had not returned.
    pub(crate) fn missed(&self) -> u64 {
        self.hooks.missed()
    }
}

impl ProbeList for FunctionEvent {
    fn attach(&self, new: NewProbe<'_>) -> Result {
        self.hooks.attach(self.kind, new.probe)
    }

    fn detach(&self, probe: &Probe) {
        self.hooks.detach(self.kind, probe);
    }
}
