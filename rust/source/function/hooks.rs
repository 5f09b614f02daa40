// SPDX-License-Identifier: GPL-2.0

//! The hooks at functions. They exist while somebody records one of the events and there is a function to
//! trace.

use super::calls::{Beginnings, Graph};
use super::choice::TracedFunctions;
use super::kind::FunctionKind;
use super::set::FunctionSet;
use crate::probe::listed::{ListedProbes, Removed};
use crate::probe::Probe;
use crate::sys::functions::begin::BeginHook;
use crate::sys::functions::call::CallHook;
use crate::sys::functions::unloading::{GoingCode, Unloading};
use crate::sys::functions::STEP;
use crate::sys::signal;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// A session's hooks at functions.
///
/// There are two locks, as in a session. `hooked` is held during a whole change, from the first look to the
/// end, which may take seconds; `state` is held only for moments, so that readers need not wait. `hooked` is
/// taken before `state`.
#[pin_data]
pub(super) struct Hooks {
    begins: Arc<Beginnings>,
    calls: Arc<Graph>,
    #[pin]
    hooked: Mutex<Hooked>,
    #[pin]
    state: Mutex<State>,
}

/// The present hooks, and their functions.
struct Hooked {
    begins: Option<(BeginHook<Beginnings>, FunctionSet)>,
    /// The functions that `State::calls` is hooked to.
    called: FunctionSet,
}

struct State {
    choice: TracedFunctions,
    calls: Option<CallHook<Graph>>,
    /// The number of calls that removed hooks have missed.
    missed: u64,
}

impl Hooks {
    /// Makes it without hooks and without probes. May sleep.
    pub(super) fn new() -> Result<Arc<Self>> {
        let hooked = Hooked {
            begins: None,
            called: FunctionSet::NONE,
        };
        let state = State {
            choice: TracedFunctions::NONE,
            calls: None,
            missed: 0,
        };
        let hooks = pin_init!(Self {
            begins: Beginnings::new()?,
            calls: Graph::new()?,
            hooked <- new_mutex!(hooked),
            state <- new_mutex!(state),
        }? Error);
        Arc::pin_init(hooks, GFP_KERNEL)
    }

    /// As [`Functions::choose`](super::Functions::choose).
    pub(super) fn choose(&self, change: impl FnOnce(&mut TracedFunctions) -> Result) -> Result {
        let mut hooked = self.hooked.lock();
        let mut choice = self.look(TracedFunctions::try_clone)?;
        change(&mut choice)?;
        let changed = self.hook(&mut hooked, &choice, None, signal::check);
        changed.inspect_err(|_| self.restore(&mut hooked))?;
        let before = core::mem::replace(&mut self.state.lock().choice, choice);
        drop(before);
        Ok(())
    }

    /// Calls `look` with the chosen functions.
    pub(super) fn look<R>(&self, look: impl FnOnce(&TracedFunctions) -> R) -> R {
        look(&self.state.lock().choice)
    }

    /// Maximum call depth of graphs; 0 for no limit.
    pub(super) fn max_depth(&self) -> u64 {
        self.calls.max_depth.load()
    }

    /// Sets the maximum call depth.
    pub(super) fn set_max_depth(&self, depth: u32) {
        self.calls.max_depth.store(depth.into());
    }

    /// The number of calls that graphs have missed.
    pub(super) fn missed(&self) -> u64 {
        let state = self.state.lock();
        let now = state.calls.as_ref().map_or(0, |calls| calls.missed());
        state.missed.wrapping_add(now)
    }

    /// Attaches a probe that records an event. `EINTR`: a signal came, and many functions are chosen. May
    /// sleep.
    pub(super) fn attach(&self, kind: FunctionKind, probe: Arc<Probe>) -> Result {
        let probes = self.probes(kind);
        let mut hooked = self.hooked.lock();
        // The kernel calls functions millions of times while it changes their code. A call without a recorder costs least.
        let attached = self.follow(&mut hooked, Some(kind), signal::check);
        let attached = attached.and_then(|()| probes.attach(probe));
        attached.inspect_err(|_| self.restore(&mut hooked))
    }

    /// Detaches the probe, which may run until `removed` is dropped. May sleep.
    pub(super) fn detach(&self, kind: FunctionKind, probe: &Probe, removed: &mut Removed) {
        let mut hooked = self.hooked.lock();
        self.probes(kind).detach(probe, removed);
        self.release(&mut hooked, None);
    }

    fn probes(&self, kind: FunctionKind) -> &ListedProbes {
        match kind {
            FunctionKind::Function => &self.begins.probes,
            FunctionKind::GraphEntry => &self.calls.entries,
            FunctionKind::GraphExit => &self.calls.exits,
        }
    }

    /// Installs the hooks of the recorded events and of the event `next`, at the chosen functions. If there are
    /// many functions, `check` can refuse each step; the hooks are then installed at some of them. May sleep.
    fn follow(
        &self,
        hooked: &mut Hooked,
        next: Option<FunctionKind>,
        check: impl Fn() -> Result,
    ) -> Result {
        let choice = self.state.lock().choice.try_clone()?;
        self.hook(hooked, &choice, next, check)
    }

    /// Restores the hooks after a change that failed, in spite of signals. May sleep.
    fn restore(&self, hooked: &mut Hooked) {
        if self.follow(hooked, None, || Ok(())).is_err() {
            pr_warn!(
                "no memory to restore the functions after a failed change: choose them again\n"
            );
        }
    }

    /// As [`follow`](Self::follow), for the functions of `choice`.
    fn hook(
        &self,
        hooked: &mut Hooked,
        choice: &TracedFunctions,
        next: Option<FunctionKind>,
        check: impl Fn() -> Result,
    ) -> Result {
        self.release(hooked, next);
        let functions = choice.only.without(&choice.not)?;
        if functions.is_empty() {
            hooked.begins = None;
            self.end_calls(hooked);
            return Ok(());
        }
        if self.wants_begins(next) {
            self.hook_begins(hooked, &functions, &check)?;
        }
        if self.wants_calls(next) && hooked.called != functions {
            // One step: a further fprobe would take longer than the first one.
            if functions.len() > STEP {
                check()?;
            }
            // The old hook is removed first: together they would both see the same calls.
            self.end_calls(hooked);
            let hook = CallHook::new(&functions, self.calls.clone())?;
            self.state.lock().calls = Some(hook);
            hooked.called = functions;
        }
        Ok(())
    }

    /// Installs the hook for beginnings at these functions.
    fn hook_begins(
        &self,
        hooked: &mut Hooked,
        functions: &FunctionSet,
        check: impl Fn() -> Result,
    ) -> Result {
        let begins = &mut hooked.begins;
        let more = match begins {
            Some((_, known)) => functions.without(known)?,
            None => functions.try_clone()?,
        };
        if more.len() > STEP {
            for step in more.chunks(STEP) {
                check()?;
                let step = FunctionSet::of(step)?;
                match begins.as_mut() {
                    Some((hook, known)) => {
                        let with = known.with(&step)?;
                        hook.add(&step)?;
                        *known = with;
                    }
                    None => *begins = Some((BeginHook::new(&step, self.begins.clone())?, step)),
                }
            }
        }
        let copy = functions.try_clone()?;
        match begins.as_mut() {
            Some((_, known)) if *known == copy => {}
            Some((hook, known)) => {
                hook.select(functions)?;
                *known = copy;
            }
            None => *begins = Some((BeginHook::new(functions, self.begins.clone())?, copy)),
        }
        Ok(())
    }

    /// Removes the hooks of events that are not recorded, except the hook of the event `next`. May sleep.
    fn release(&self, hooked: &mut Hooked, next: Option<FunctionKind>) {
        if !self.wants_begins(next) {
            hooked.begins = None;
        }
        if !self.wants_calls(next) {
            self.end_calls(hooked);
        }
    }

    /// Whether beginnings are recorded, or are about to be.
    fn wants_begins(&self, next: Option<FunctionKind>) -> bool {
        next == Some(FunctionKind::Function) || self.begins.is_any()
    }

    /// As [`wants_begins`](Self::wants_begins), for calls.
    fn wants_calls(&self, next: Option<FunctionKind>) -> bool {
        use FunctionKind::{GraphEntry, GraphExit};
        matches!(next, Some(GraphEntry | GraphExit)) || self.calls.is_any()
    }

    /// Takes the graph's hook away. May sleep.
    fn end_calls(&self, hooked: &mut Hooked) {
        hooked.called = FunctionSet::NONE;
        let mut state = self.state.lock();
        let calls = state.calls.take();
        let missed = calls.as_ref().map_or(0, |calls| calls.missed());
        state.missed = state.missed.wrapping_add(missed);
        drop(state);
        drop(calls);
    }
}

impl Unloading for Hooks {
    fn unloading(&self, code: &GoingCode<'_>) {
        let goes = |function| code.has(function);
        let mut hooked = self.hooked.lock();
        self.state.lock().choice.drop_if(goes);
        // ftrace keeps the functions in a filter. An empty filter would mean all functions.
        if let Some((hook, functions)) = &mut hooked.begins {
            let before = functions.len();
            functions.drop_if(goes);
            let selected = match functions.len() {
                0 => Err(ENOENT),
                len if len == before => Ok(()),
                _ => hook.select(functions),
            };
            if selected.is_err() {
                if !functions.is_empty() {
                    pr_warn!(
                        "no memory to drop an unloaded module's functions: choose the others again\n"
                    );
                }
                hooked.begins = None;
            }
        }
        let before = hooked.called.len();
        hooked.called.drop_if(goes);
        if hooked.called.is_empty() {
            self.end_calls(&mut hooked);
        } else if hooked.called.len() != before {
            let state = self.state.lock();
            let forgot = state
                .calls
                .as_ref()
                .map(|calls| calls.forget_all_but(&hooked.called));
            drop(state);
            if let Some(Err(_)) = forgot {
                pr_warn!(
                    "no memory to drop an unloaded module's functions: choose the others again\n"
                );
                self.end_calls(&mut hooked);
            }
        }
    }

    fn begun(&self, code: &GoingCode<'_>) {
        let mut hooked = self.hooked.lock();
        let dropped = self.state.lock().choice.drop_if(|at| code.has(at));
        // (fprobe forgets the functions of an unloaded module, but not these.)
        if dropped && self.follow(&mut hooked, None, || Ok(())).is_err() {
            pr_warn!("no memory to drop the functions of a module's init code: choose the others again\n");
        }
    }
}
