// SPDX-License-Identifier: GPL-2.0

//! Functions of the kernel: that one is called, and, as a graph, calls and returns. The events are
//! called as ftrace's, and mean the same.
//!
//! Which functions is a matter of the session: each has hooks of its own, which are on while somebody
//! records one of the events and there is a function to be traced. None is, where none was chosen.

mod set;

use super::captured::CapturedProbe;
use super::recorders::{Attach, Recorders};
use super::sampled::Frequency;
use super::stopwatch::Stopwatch;
use crate::abi::schema::{Field, FieldType};
use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::record::memory::RecordWriter;
use crate::sys::args::Task;
use crate::sys::functions::begin::{BeginHook, Begins};
use crate::sys::functions::call::{CallHook, Calls};
use crate::sys::functions::unloading::{GoingCode, Unloading, UnloadingWatch};
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};
pub(crate) use set::FunctionSet;

/// An event of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A function is called.
    Function,
    /// The same, in a graph.
    GraphEntry,
    /// It returns.
    GraphExit,
}

impl Kind {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Function, Self::GraphEntry, Self::GraphExit];

    /// The events' subsystem.
    pub(crate) const SUBSYSTEM: &'static str = "ftrace";

    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::GraphEntry => "funcgraph_entry",
            Self::GraphExit => "funcgraph_exit",
        }
    }

    /// Its fields, in the order of the record.
    pub(crate) const fn fields(self) -> &'static [Field<'static>] {
        const FUNCTION: [Field<'static>; 2] = [
            field("ip", FieldType::address()),
            field("parent_ip", FieldType::address()),
        ];
        const ENTRY: [Field<'static>; 2] = [
            field("func", FieldType::address()),
            field("depth", FieldType::unsigned(32)),
        ];
        const EXIT: [Field<'static>; 4] = [
            field("func", FieldType::address()),
            field("depth", FieldType::unsigned(32)),
            field("overrun", FieldType::unsigned(32)),
            field("duration", FieldType::unsigned(64)),
        ];
        match self {
            Self::Function => &FUNCTION,
            Self::GraphEntry => &ENTRY,
            Self::GraphExit => &EXIT,
        }
    }
}

const fn field(name: &'static str, ty: FieldType<'static>) -> Field<'static> {
    Field { name, ty }
}

/// The functions that a session traces, and what has them traced.
pub(crate) struct Functions {
    hooks: Arc<Hooks>,
    /// By [`Kind::ALL`].
    events: [FunctionEvent; Kind::ALL.len()],
    _unloading: Pin<KBox<UnloadingWatch<Hooks>>>,
}

/// An event, in a session.
struct FunctionEvent {
    kind: Kind,
    hooks: Arc<Hooks>,
}

/// What is hooked to functions.
///
/// Two locks, as a session has them: `hooked` is held by who changes something, from the first look to
/// the end, which may take seconds; `state` is held for moments, so that nobody who only looks waits.
/// `hooked` is taken before `state`.
#[pin_data]
struct Hooks {
    begins: Arc<Beginnings>,
    calls: Arc<Graph>,
    #[pin]
    hooked: Mutex<Hooked>,
    #[pin]
    state: Mutex<State>,
}

/// What is hooked now, and to which functions.
struct Hooked {
    begins: Option<(BeginHook<Beginnings>, FunctionSet)>,
    /// The functions that `State::calls` is hooked to.
    called: FunctionSet,
}

struct State {
    choice: Choice,
    calls: Option<CallHook<Graph>>,
    /// How often hooks that are gone have missed a call.
    missed: u64,
}

/// Which functions are traced.
pub(crate) struct Choice {
    /// These alone.
    pub(crate) only: FunctionSet,
    /// Of these, not these.
    pub(crate) not: FunctionSet,
}

/// Who records that functions are called.
#[pin_data]
struct Beginnings {
    #[pin]
    recorders: Recorders,
}

/// Who records calls and returns.
#[pin_data]
struct Graph {
    #[pin]
    entries: Recorders,
    #[pin]
    exits: Recorders,
    /// So many calls in each other are traced; 0: all.
    max_depth: SharedWord,
    stopwatch: Stopwatch,
}

/// What is kept from a call to its return.
#[derive(Clone, Copy)]
struct Called {
    time: u64,
    depth: u32,
}

impl Functions {
    /// None, and nobody records them. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let begins = Arc::pin_init(
            pin_init!(Beginnings { recorders <- Recorders::new() }),
            GFP_KERNEL,
        )?;
        let calls = Arc::pin_init(
            pin_init!(Graph {
                entries <- Recorders::new(),
                exits <- Recorders::new(),
                max_depth: SharedWord::new(0),
                stopwatch: Stopwatch::best(),
            }),
            GFP_KERNEL,
        )?;
        let hooked = Hooked {
            begins: None,
            called: FunctionSet::NONE,
        };
        let state = State {
            choice: Choice::NONE,
            calls: None,
            missed: 0,
        };
        let hooks = pin_init!(Hooks {
            begins,
            calls,
            hooked <- new_mutex!(hooked),
            state <- new_mutex!(state),
        });
        let hooks = Arc::pin_init(hooks, GFP_KERNEL)?;
        let functions = Self {
            events: Kind::ALL.map(|kind| FunctionEvent {
                kind,
                hooks: hooks.clone(),
            }),
            _unloading: UnloadingWatch::new(hooks.clone())?,
            hooks,
        };
        Ok(Arc::new(functions, GFP_KERNEL)?)
    }

    /// An event, to be recorded for this session.
    pub(super) fn event(&self, kind: Kind) -> &dyn Attach {
        let [function, entry, exit] = &self.events;
        match kind {
            Kind::Function => function,
            Kind::GraphEntry => entry,
            Kind::GraphExit => exit,
        }
    }

    /// Has other functions traced from now on: what `change` makes of those that are. While it looks
    /// for functions no module goes unseen. On failure nothing has changed. May sleep.
    pub(crate) fn choose(&self, change: impl FnOnce(&mut Choice) -> Result) -> Result {
        let mut hooked = self.hooks.hooked.lock();
        let mut choice = self.look(Choice::try_clone)?;
        change(&mut choice)?;
        self.hooks.hook(&mut hooked, &choice).inspect_err(|_| {
            if self.hooks.follow(&mut hooked).is_err() {
                pr_warn!("no memory to trace functions on as before a change that failed\n");
            }
        })?;
        let before = core::mem::replace(&mut self.hooks.state.lock().choice, choice);
        drop(before);
        Ok(())
    }

    /// Has none traced any more, and all depths where some are. May sleep.
    pub(crate) fn clear(&self) -> Result {
        self.set_max_depth(0);
        self.choose(|choice| {
            *choice = Choice::NONE;
            Ok(())
        })
    }

    /// Calls `look` with what is chosen.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&Choice) -> R) -> R {
        look(&self.hooks.state.lock().choice)
    }

    /// So many calls in each other are traced in a graph; 0: all.
    pub(crate) fn max_depth(&self) -> u64 {
        self.hooks.calls.max_depth.load()
    }

    /// Has so many traced.
    pub(crate) fn set_max_depth(&self, depth: u32) {
        self.hooks.calls.max_depth.store(depth.into());
    }

    /// How many calls were not seen in graphs, for so many of their task had not returned.
    pub(crate) fn missed(&self) -> u64 {
        let state = self.hooks.state.lock();
        let now = state.calls.as_ref().map_or(0, |calls| calls.missed());
        state.missed.wrapping_add(now)
    }
}

impl Attach for FunctionEvent {
    fn attach(&self, probe: Arc<CapturedProbe>, _frequency: Frequency) -> Result {
        let recorders = self.hooks.recorders(self.kind);
        let mut hooked = self.hooks.hooked.lock();
        recorders.attach(probe.clone())?;
        self.hooks
            .follow(&mut hooked)
            .inspect_err(|_| recorders.detach(&probe))
    }

    fn detach(&self, probe: &CapturedProbe) {
        let mut hooked = self.hooks.hooked.lock();
        self.hooks.recorders(self.kind).detach(probe);
        self.hooks.release(&mut hooked);
    }
}

impl Choice {
    const NONE: Self = Self {
        only: FunctionSet::NONE,
        not: FunctionSet::NONE,
    };

    fn try_clone(&self) -> Result<Self> {
        Ok(Self {
            only: self.only.try_clone()?,
            not: self.not.try_clone()?,
        })
    }

    /// Puts out functions that `goes` picks. Whether there were any.
    fn drop_if(&mut self, goes: impl Fn(usize) -> bool) -> bool {
        let before = self.only.len() + self.not.len();
        self.only.drop_if(&goes);
        self.not.drop_if(&goes);
        self.only.len() + self.not.len() != before
    }
}

impl Hooks {
    fn recorders(&self, kind: Kind) -> &Recorders {
        match kind {
            Kind::Function => &self.begins.recorders,
            Kind::GraphEntry => &self.calls.entries,
            Kind::GraphExit => &self.calls.exits,
        }
    }

    /// Has the hooks on that are wanted, for the functions that are chosen. May sleep.
    fn follow(&self, hooked: &mut Hooked) -> Result {
        let choice = self.state.lock().choice.try_clone()?;
        self.hook(hooked, &choice)
    }

    /// The same for those of a choice.
    fn hook(&self, hooked: &mut Hooked, choice: &Choice) -> Result {
        self.release(hooked);
        let functions = choice.only.without(&choice.not)?;
        if functions.is_empty() {
            hooked.begins = None;
            self.end_calls(hooked);
            return Ok(());
        }
        if self.is_begun() {
            let copy = functions.try_clone()?;
            match &mut hooked.begins {
                Some((_, known)) if *known == functions => {}
                Some((hook, known)) => {
                    hook.select(&functions)?;
                    *known = copy;
                }
                none => *none = Some((BeginHook::new(&functions, self.begins.clone())?, copy)),
            }
        }
        if self.is_called() && hooked.called != functions {
            // Not both at a time: they would see the same calls.
            self.end_calls(hooked);
            let hook = CallHook::new(&functions, self.calls.clone())?;
            self.state.lock().calls = Some(hook);
            hooked.called = functions;
        }
        Ok(())
    }

    /// Takes away the hooks that are for nobody. May sleep.
    fn release(&self, hooked: &mut Hooked) {
        if !self.is_begun() {
            hooked.begins = None;
        }
        if !self.is_called() {
            self.end_calls(hooked);
        }
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

    /// Whether somebody records that functions are called.
    fn is_begun(&self) -> bool {
        self.begins.recorders.is_any(&NoPreempt::new())
    }

    /// Whether somebody records calls or returns.
    fn is_called(&self) -> bool {
        let guard = NoPreempt::new();
        self.calls.entries.is_any(&guard) || self.calls.exits.is_any(&guard)
    }
}

impl Unloading for Hooks {
    fn unloading(&self, code: &GoingCode<'_>) {
        let goes = |function| code.has(function);
        let mut hooked = self.hooked.lock();
        self.state.lock().choice.drop_if(goes);
        // ftrace keeps what a filter has. An empty one would stand for all functions.
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
                        "no memory to trace functions on without those of a module that went\n"
                    );
                }
                hooked.begins = None;
            }
        }
        // fprobe forgets them itself.
        hooked.called.drop_if(goes);
        if hooked.called.is_empty() {
            self.end_calls(&mut hooked);
        }
    }

    fn begun(&self, code: &GoingCode<'_>) {
        let mut hooked = self.hooked.lock();
        let dropped = self.state.lock().choice.drop_if(|at| code.has(at));
        // (Unlike those of a module that is unloaded, fprobe does not forget them.)
        if dropped && self.follow(&mut hooked).is_err() {
            pr_warn!("no memory to trace functions on without those of a module's beginning\n");
        }
    }
}

impl Begins for Beginnings {
    #[inline(always)]
    fn begins(&self, ip: usize, parent_ip: usize) {
        let guard = NoPreempt::new();
        self.recorders.for_each(
            &guard,
            #[inline(always)]
            |probe| {
                probe.record::<16, _>(
                    #[inline(always)]
                    || None,
                    #[inline(always)]
                    || {
                        (
                            16,
                            #[inline(always)]
                            move |to: RecordWriter<'_>| {
                                to.put(ip as u64).put(parent_ip as u64).put_tail(&())
                            },
                        )
                    },
                )
            },
        );
    }
}

impl Calls for Graph {
    type Kept = Called;

    #[inline(always)]
    fn called(&self, function: usize) -> Option<Called> {
        let depth = Task::current().graph_depth();
        let max_depth = self.max_depth.load();
        if max_depth != 0 && u64::from(depth) >= max_depth {
            return None;
        }
        let guard = NoPreempt::new();
        self.entries.for_each(
            &guard,
            #[inline(always)]
            |probe| {
                probe.record::<12, _>(
                    #[inline(always)]
                    || None,
                    #[inline(always)]
                    || {
                        (
                            12,
                            #[inline(always)]
                            move |to: RecordWriter<'_>| {
                                to.put(function as u64).put(depth).put_tail(&())
                            },
                        )
                    },
                )
            },
        );
        // Last, so that what recording takes is no part of the call.
        let time = self.stopwatch.read();
        Some(Called { time, depth })
    }

    #[inline(always)]
    fn returned(&self, function: usize, Called { time, depth }: Called) {
        let duration = self.stopwatch.ns_between(time, self.stopwatch.read());
        let overrun = Task::current().graph_overrun();
        let guard = NoPreempt::new();
        self.exits.for_each(
            &guard,
            #[inline(always)]
            |probe| {
                probe.record::<24, _>(
                    #[inline(always)]
                    || None,
                    #[inline(always)]
                    || {
                        (
                            24,
                            #[inline(always)]
                            move |to: RecordWriter<'_>| {
                                let to = to.put(function as u64).put(depth).put(overrun);
                                to.put(duration).put_tail(&())
                            },
                        )
                    },
                )
            },
        );
    }
}
