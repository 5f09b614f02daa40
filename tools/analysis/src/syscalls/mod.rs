// SPDX-License-Identifier: GPL-2.0

//! Number, failures and duration of the system calls (`--syscalls`).
//!
//! An entry and an exit are one call if the same thread made both, and no event of the thread in between
//! may be missing. The thread is the one that runs on the CPU, unless the record has the context `tid`.

mod answer;
mod names;

use super::begun::Begun;
use super::schedule::Schedule;
use super::schedule_events::Switch;
use super::tasks::Life;
use super::whose::Owner;
use crate::recent::Recent;
use crate::{integer, key, Analysis, Answer, Catalogue, EventKey, Missing, Moment};
use ahash::{HashMap, HashMapExt};
use answer::{by_name, Call, Found, ProcessCall};
use ctf::{Clock, Event, EventLayout, Type};
pub use names::{is_end_of, CallName, Names, Which};
use std::mem::take;

/// Maximum number of calls that an error names.
const NAMED_CALLS: usize = 8;

/// Results that are errors: -1 to -4095.
pub const ERRORS: std::ops::RangeInclusive<i64> = -4095..=-1;

/// Rows of the second table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// There is no second table.
    #[default]
    Call,
    /// A row for each process and call.
    Process,
    /// A row for each name of processes, and call.
    Name,
}

/// Analysis of the system calls of a trace.
pub struct Syscalls {
    clock: Clock,
    by: By,
    events: Vec<(EventKey, EventKind)>,
    names: Names,
    /// Calls by the index of their name.
    calls: Vec<Call>,
    /// The call that each thread is in.
    open: Begun<(), Open>,
    /// By CPU: number of calls since its last switch whose records have no thread id.
    nameless: Vec<u64>,
    /// Number of calls that were attributed to the wrong thread.
    mistaken: u64,
    processes: Vec<ProcessCall>,
    /// Indexes of these.
    places: HashMap<RowKey, u32>,
    recent: Recent<RowKey>,
}

/// A process, and the index of a call.
type RowKey = (Owner, Life, usize);

/// Kind of an event, with the indexes of its fields.
#[derive(Clone, Copy)]
struct EventKind {
    call: Which,
    edge: Edge,
    /// Whether the record has a thread id.
    says_thread: bool,
}

/// Begin or end of a call.
#[derive(Clone, Copy, Debug)]
pub enum Edge {
    /// Begin of a call.
    Entry,
    /// End of a call.
    Exit {
        /// Field with the result.
        ret: usize,
        /// Field with the number of a call that is not known.
        id: Option<usize>,
    },
}

impl Edge {
    /// Returns the result of the call that an event ends. Returns `None` at the end of rt_sigreturn: there
    /// the field has a register of the code that the signal had interrupted.
    pub fn result(self, event: &Event<'_>) -> Option<i64> {
        let Self::Exit { ret, id } = self else {
            return None;
        };
        let is_return = id.is_some_and(|id| integer(event.value(id)) == Some(-1));
        integer(event.value(ret)).filter(|_| !is_return)
    }
}

/// A call that has not ended.
#[derive(Clone, Copy)]
struct Open {
    call: usize,
    owner: Owner,
}

impl Syscalls {
    /// Creates the analysis for a trace with these events.
    pub fn new(catalogue: &Catalogue<'_>, by: By) -> Result<Self, Missing> {
        let mut names = Names::default();
        let mut events = Vec::new();
        for layout in catalogue.events() {
            let Some((name, edge)) = edge(layout) else {
                continue;
            };
            let call = names.which(name);
            let kind = EventKind {
                call,
                edge,
                says_thread: catalogue.says_thread(layout),
            };
            events.push((key(layout), kind));
        }
        // The smallest recording that is enough.
        let calls = names.all();
        let calls = match calls.len() {
            1..=NAMED_CALLS => calls.join(","),
            _ => "syscalls".to_owned(),
        };
        let context = if by == By::Call {
            "tid,comm"
        } else {
            "tid,pid,comm"
        };
        let missing = |events| Missing {
            option: "--syscalls",
            events,
            record: format!("-e {calls} --context {context}").into(),
        };
        let has = |entry| {
            let mut kinds = events.iter().map(|(_, kind)| kind);
            kinds.any(|kind| matches!(kind.edge, Edge::Entry) == entry)
        };
        if !has(true) || !has(false) {
            return Err(missing("the entries and exits of system calls"));
        }
        let says_thread = |(_, kind): &(_, EventKind)| kind.says_thread;
        if !catalogue.has_switches() && !events.iter().all(says_thread) {
            return Err(missing("sched_switch (or the context tid)"));
        }
        Ok(Self {
            clock: catalogue.metadata().clock,
            by,
            events,
            names,
            calls: Vec::new(),
            open: Begun::default(),
            nameless: Vec::new(),
            mistaken: 0,
            processes: Vec::new(),
            places: HashMap::new(),
            recent: Recent::default(),
        })
    }

    /// Returns the index of an event's call. Adds the call if it is new.
    fn call(&mut self, kind: EventKind, event: &Event<'_>) -> usize {
        let place = self.names.place(kind.call, event);
        let known = self.names.all().iter().skip(self.calls.len());
        self.calls.extend(known.cloned().map(Call::new));
        place
    }

    fn entry(&mut self, kind: EventKind, event: &Event<'_>, now: &Moment<'_>) {
        let owner = now.owner();
        let call = self.call(kind, event);
        self.calls[call].calls += 1;
        if !kind.says_thread {
            if self.nameless.len() <= now.cpu {
                self.nameless.resize(now.cpu + 1, 0);
            }
            self.nameless[now.cpu] += 1;
        }
        if self.by != By::Call {
            self.process_call(owner, call, now).calls += 1;
        }
        if let Some(doer) = now.doer() {
            self.open.begin(doer, (), Open { call, owner }, now);
        }
    }

    fn exit(&mut self, kind: EventKind, event: &Event<'_>, now: &Moment<'_>) {
        let open = now.doer().and_then(|doer| self.open.end(doer, &(), now));
        let Some(ret) = kind.edge.result(event) else {
            return;
        };
        let failed = ERRORS.contains(&ret);
        let place = self.call(kind, event);
        let open = open.filter(|open| self.names.is_end_of(place, open.what.call));
        let place = open.as_ref().map_or(place, |open| open.what.call);
        let call = &mut self.calls[place];
        call.errors += u64::from(failed);
        let took = open.as_ref().map(|open| self.clock.nanoseconds(open.ticks));
        if let Some(took) = took {
            call.durations.add(took);
        }
        if self.by != By::Call {
            let owner = open.map_or_else(|| now.owner(), |open| open.what.owner);
            let call = self.process_call(owner, place, now);
            call.errors += u64::from(failed);
            if let Some(took) = took {
                call.timed += 1;
                call.total_ns = call.total_ns.saturating_add(took);
                call.max_ns = call.max_ns.max(took);
            }
        }
    }

    /// Returns the row of a process's calls. Adds the row if it is new.
    fn process_call(&mut self, owner: Owner, call: usize, now: &Moment<'_>) -> &mut ProcessCall {
        let name = &self.calls[call].name;
        let key = (owner, now.schedule.life_of(owner), call);
        let id = owner.id().unwrap_or(0) as usize;
        let (places, processes) = (&mut self.places, &mut self.processes);
        let number = id.wrapping_mul(31).wrapping_add(call);
        let place = self.recent.place(number, key, |key| {
            *places.entry(key).or_insert_with(|| {
                processes.push(ProcessCall::default());
                processes.len() as u32 - 1
            })
        });
        let call = &mut self.processes[place as usize];
        if call.name.is_empty() {
            call.name.clone_from(name);
        }
        match owner {
            Owner::Process(pid) => call.pid = Some(pid),
            Owner::Thread(tid) => call.tid = Some(tid),
            Owner::Unknown => {}
        }
        if let Some(comm) = now.process_comm(owner) {
            if call
                .comm
                .as_ref()
                .is_none_or(|known| known.as_bytes() != comm)
            {
                call.comm = Some(String::from_utf8_lossy(comm).into_owned());
            }
        }
        call
    }
}

impl Analysis for Syscalls {
    fn cost(&self) -> u32 {
        6
    }

    fn events(&self) -> Vec<EventKey> {
        self.events.iter().map(|(key, _)| *key).collect()
    }

    fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) {
        let kind = self.events[which].1;
        match kind.edge {
            Edge::Entry => self.entry(kind, event, now),
            Edge::Exit { .. } => self.exit(kind, event, now),
        }
    }

    fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) {
        let nameless = self.nameless.get_mut(now.cpu).map_or(0, take);
        if switch.instead_of.is_some() {
            self.mistaken += nameless;
        }
        self.open.switch(switch, now);
        // The last call of a thread that ends does not return.
        self.open.ended(switch, now);
    }

    fn lost(&mut self, schedule: &Schedule, _time: u64) {
        self.open.lost(schedule);
    }

    fn answer(self: Box<Self>, _ticks: u64) -> Box<dyn Answer> {
        let Self {
            by,
            calls,
            mistaken,
            processes,
            ..
        } = *self;
        let (processes, names) = match by {
            By::Call => (None, None),
            By::Process => (Some(processes), None),
            By::Name => (None, Some(by_name(processes))),
        };
        Box::new(Found::new(calls, mistaken, processes, names))
    }
}

/// Returns the call that an event begins or ends.
pub fn edge(layout: &EventLayout) -> Option<(CallName, Edge)> {
    let (prefix, name) = match layout.name.strip_prefix("compat_") {
        Some(name) => ("compat_", name),
        None => ("", layout.name.as_str()),
    };
    let named = |name| {
        let id = layout.field("id");
        let has_names = |id: &usize| matches!(layout.fields[*id].ty, Type::Enumeration(..));
        match id.filter(has_names) {
            Some(id) => CallName::OfNumber(id),
            None => CallName::Own(format!("{prefix}{name}")),
        }
    };
    if let Some(name) = name.strip_prefix("syscall_entry_") {
        return Some((named(name), Edge::Entry));
    }
    let exit = Edge::Exit {
        ret: layout.field("ret")?,
        id: layout.field("id"),
    };
    let name = name.strip_prefix("syscall_exit_")?;
    Some((named(name), exit))
}
