// SPDX-License-Identifier: GPL-2.0

//! The places in which threads sleep: system call, lock, kernel function, call stack.

use super::numbers::Numbers;
use crate::critical_path::history::History;
use crate::locks::{futexes, kernel};
use crate::schedule::Schedule;
use crate::schedule_events::Switch;
use crate::syscalls::{self, Pairs};
use crate::{bits, key, Catalogue, EventKey, Moment};
use ahash::{HashMap, HashMapExt};
use ctf::{Clock, Event, EventLayout};
use std::path::Path;
use symbols::{Side, Stacks, Symbols};

/// Number of kernel functions of a stack that are shown, from the innermost on.
const KERNEL_FRAMES: usize = 3;
/// Number of functions of the program that are shown.
const USER_FRAMES: usize = 2;

/// Begins of the names of kernel functions that every sleeping thread is in. A stack leaves such functions out.
const SCHEDULER: [&str; 7] = [
    "__schedule",
    "schedule",
    "io_schedule",
    "preempt_schedule",
    "__cond_resched",
    "__sched_text",
    "__traceiter_",
];

/// The same for a waker.
const WAKE: [&str; 7] = [
    "ttwu_",
    "try_to_wake_up",
    "wake_up_",
    "__wake_up",
    "default_wake_function",
    "autoremove_wake_function",
    "__traceiter_",
];

/// A place in which a thread slept, as far as the trace has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// Name of the system call.
    pub call: Option<String>,
    /// Kind and address of the lock.
    pub lock: Option<String>,
    /// Kernel function that was traced as a call.
    pub function: Option<String>,
    /// The innermost functions of the call stack, without those of the scheduler.
    pub stack: Option<String>,
}

impl Place {
    /// Returns the place in words; `None` if nothing is known of it.
    pub fn text(&self) -> Option<String> {
        let call = match (&self.lock, &self.call) {
            (Some(lock), Some(call)) if !lock.starts_with(call.as_str()) => {
                Some(format!("{lock} in {call}"))
            }
            (Some(lock), _) => Some(lock.clone()),
            (None, call) => call.clone(),
        };
        match (call, self.function.as_ref().or(self.stack.as_ref())) {
            (Some(call), Some(inner)) => Some(format!("{call} ({inner})")),
            (Some(only), None) => Some(only),
            (None, inner) => inner.cloned(),
        }
    }

    /// Returns whether the call ends only by its own timer or by a signal.
    pub fn is_pause(&self) -> bool {
        let call = self.call.as_deref().unwrap_or_default();
        matches!(call.trim_start_matches("compat_"), "nanosleep")
            || call.contains("clock_nanosleep")
    }
}

/// The places in which threads are.
pub struct Places {
    clock: Clock,
    symbols: Symbols,
    /// Stacks by stream class, if any event has one.
    stacks: Option<Vec<Stacks>>,
    events: Vec<(EventKey, Kind)>,
    pairs: Pairs<()>,
    has_calls: bool,
    /// The system call of each thread.
    calls: HashMap<i64, Call>,
    /// The traced functions that each thread is in, and their depths.
    functions: HashMap<i64, Vec<(u64, u64)>>,
    /// The kernel lock that each thread waits for.
    locks: HashMap<i64, (u64, &'static str)>,
    /// Place in which each thread left its CPU.
    left: HashMap<i64, u32>,
    places: Numbers<Place>,
}

/// Kind of an event, with the indexes of its fields.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Begin or end of a system call. Of a futex: address and command.
    Call(Option<(usize, Option<usize>)>),
    Enter {
        function: usize,
        depth: usize,
    },
    Return {
        depth: usize,
    },
    Contention {
        address: usize,
        flags: usize,
    },
    Acquired,
}

#[derive(Clone, Copy, Debug)]
struct Call {
    name: usize,
    /// Address of the futex that the call waits for.
    futex: Option<u64>,
}

impl Kind {
    fn of(layout: &EventLayout) -> Option<Self> {
        if syscalls::edge(layout).is_some() {
            let futex = match layout.name.strip_prefix("syscall_entry_") {
                Some("futex") => layout.field("uaddr").zip(Some(layout.field("op"))),
                Some("futex_wait") => layout.field("uaddr").zip(Some(None)),
                _ => None,
            };
            return Some(Self::Call(futex));
        }
        match layout.name.rsplit(':').next()? {
            "funcgraph_entry" => Some(Self::Enter {
                function: layout.field("func")?,
                depth: layout.field("depth")?,
            }),
            "funcgraph_exit" => Some(Self::Return {
                depth: layout.field("depth")?,
            }),
            "contention_begin" => Some(Self::Contention {
                address: layout.field("lock_addr")?,
                flags: layout.field("flags")?,
            }),
            "contention_end" => Some(Self::Acquired),
            _ => None,
        }
    }
}

impl Places {
    /// Creates the places for the trace in `dir`.
    pub fn new(catalogue: &Catalogue<'_>, dir: &Path) -> Self {
        let metadata = catalogue.metadata();
        let classes = metadata.streams.iter();
        let layouts = || classes.clone().flat_map(|class| class.events.values());
        let events: Vec<_> = layouts()
            .filter_map(|layout| Some((key(layout), Kind::of(layout)?)))
            .collect();
        let stacks = Stacks::of_all(metadata);
        let has_functions = events
            .iter()
            .any(|(_, kind)| matches!(kind, Kind::Enter { .. }));
        let symbols = match has_functions || stacks.is_some() {
            true => Symbols::of(dir, metadata),
            false => Symbols::default(),
        };
        Self {
            clock: metadata.clock,
            symbols,
            stacks,
            has_calls: events.iter().any(|(_, kind)| matches!(kind, Kind::Call(_))),
            pairs: Pairs::new(layouts()),
            events,
            calls: HashMap::new(),
            functions: HashMap::new(),
            locks: HashMap::new(),
            left: HashMap::new(),
            places: Numbers::new(),
        }
    }

    /// Returns the events that the places are read from. `event` identifies each by its index in this list.
    pub fn events(&self) -> impl Iterator<Item = EventKey> + '_ {
        self.events.iter().map(|(key, _)| *key)
    }

    /// Returns whether the trace has system calls.
    pub fn has_calls(&self) -> bool {
        self.has_calls
    }

    /// Returns whether events have call stacks.
    pub fn has_stacks(&self) -> bool {
        let stacks = self.stacks.iter().flatten();
        stacks.into_iter().any(Stacks::is_some)
    }

    /// Returns the place with this number.
    pub fn get(&self, place: u32) -> Option<&Place> {
        self.places.get(place)
    }

    /// Returns the name of the system call with this number.
    pub fn call(&self, name: u32) -> &str {
        let names = self.pairs.names();
        names.get(name as usize).map_or("?", String::as_str)
    }

    /// Processes an event. Adds a system call that has returned to the history.
    pub fn event(
        &mut self,
        which: usize,
        event: &Event<'_>,
        now: &Moment<'_>,
        history: &mut History,
    ) -> Option<()> {
        let kind = self.events[which].1;
        if let Kind::Call(futex) = kind {
            let seen = self.pairs.event(event, now)?;
            let tid = now.tid()?;
            if seen.is_entry {
                self.functions.remove(&tid);
                self.locks.remove(&tid);
                if self.pairs.begin(seen.name, (), now).is_none() {
                    let futex = futex.and_then(|(address, command)| {
                        let is_wait = match command {
                            Some(command) => futexes::is_wait(bits(event.value(command))?),
                            None => true,
                        };
                        bits(event.value(address)).filter(|_| is_wait)
                    });
                    let name = seen.name;
                    self.calls.insert(tid, Call { name, futex });
                }
            } else {
                self.calls.remove(&tid);
                if let Some(begun) = seen.begun {
                    history.called(tid, begun.since, now.time, begun.name as u32);
                }
            }
            return Some(());
        }
        let tid = now.tid().filter(|tid| *tid != 0)?;
        let value = |field: usize| bits(event.value(field));
        match kind {
            Kind::Call(_) => {}
            Kind::Enter { function, depth } => {
                let (function, depth) = (value(function)?, value(depth)?);
                let inside = self.functions.entry(tid).or_default();
                inside.retain(|(_, outer)| *outer < depth);
                inside.push((function, depth));
            }
            Kind::Return { depth } => {
                let depth = value(depth)?;
                if let Some(inside) = self.functions.get_mut(&tid) {
                    inside.retain(|(_, outer)| *outer < depth);
                }
            }
            Kind::Contention { address, flags } => {
                let kind = kernel::kind(value(flags)? & !1);
                self.locks.insert(tid, (value(address)?, kind));
            }
            Kind::Acquired => drop(self.locks.remove(&tid)),
        }
        Some(())
    }

    /// Handles a switch of a CPU: notes the place in which the thread left it.
    pub fn leave(&mut self, event: &Event<'_>, switch: &Switch<'_>, now: &Moment<'_>) {
        self.pairs.switch(switch, now);
        let tid = switch.prev_tid;
        if tid == 0 {
            return;
        }
        if switch.left.is_end() {
            self.forget(tid);
            return;
        }
        let ns = self.clock.nanoseconds(now.time);
        let call = self.calls.get(&tid);
        let name = call.and_then(|call| self.pairs.names().get(call.name));
        let futex = call.and_then(|call| call.futex);
        let futex = futex.map(|address| format!("futex {address:#x}"));
        let lock = self.locks.get(&tid);
        let lock = lock.map(|(address, kind)| format!("{kind} {address:#x}"));
        let function = self.functions.get(&tid).and_then(|inside| inside.last());
        let function = function.map(|(function, _)| self.kernel(ns, *function));
        let place = Place {
            call: name.cloned(),
            lock: lock.or(futex),
            function,
            stack: self.stack(event, tid, &SCHEDULER),
        };
        if place == Place::default() {
            self.left.remove(&tid);
        } else {
            let place = self.places.of(place);
            self.left.insert(tid, place);
        }
    }

    /// Returns the place in which a thread left its CPU the last time.
    pub fn of(&self, tid: i64) -> Option<u32> {
        self.left.get(&tid).copied()
    }

    fn kernel(&self, ns: u64, address: u64) -> String {
        match self.symbols.kernel(ns, address) {
            Some(symbol) => symbol.name.clone(),
            None => format!("{address:#x}"),
        }
    }

    /// Returns the innermost functions of the call stack of a thread that wakes another one.
    pub fn waker(&mut self, event: &Event<'_>, tid: i64) -> Option<String> {
        self.stack(event, tid, &WAKE)
    }

    /// Returns the innermost functions of an event's call stack, without those whose names begin with one of `without`.
    fn stack(&mut self, event: &Event<'_>, tid: i64, without: &[&str]) -> Option<String> {
        let stacks = *self.stacks.as_ref()?.get(event.layout.stream_id as usize)?;
        let ns = self.clock.nanoseconds(event.timestamp);
        let kernel = stacks
            .frames(event, Side::Kernel)
            .map(|frame| self.kernel(ns, frame.code()))
            .skip_while(|name| without.iter().any(|known| name.starts_with(known)))
            .take(KERNEL_FRAMES);
        let mut names: Vec<_> = kernel.collect();
        for frame in stacks.frames(event, Side::User).take(USER_FRAMES) {
            names.push(match self.symbols.user(tid, ns, frame.code()) {
                Some(place) => match place.function {
                    Some(function) => function.name.clone(),
                    None => format!("[{}]", place.file.name()),
                },
                None => format!("{:#x}", frame.address),
            });
        }
        (!names.is_empty()).then(|| names.join(" < "))
    }

    fn forget(&mut self, tid: i64) {
        self.calls.remove(&tid);
        self.functions.remove(&tid);
        self.locks.remove(&tid);
        self.left.remove(&tid);
    }

    /// Handles a loss: events may be missing from now on.
    pub fn lost(&mut self, schedule: &Schedule) {
        self.pairs.lost(schedule);
        self.calls.clear();
        self.functions.clear();
        self.locks.clear();
        self.left.clear();
    }
}
