// SPDX-License-Identifier: GPL-2.0

//! `--syscalls`: how often each system call was made, how often it failed, how long it took.
//!
//! An entry and an exit are one call if a thread made the one and then the other, and nothing that
//! it may have done in between is missing. The thread is the one that runs on the CPU; a record
//! that has the context `tid` says it itself.

mod answer;

use super::analysis::{integer, key, text, Analysis, Answer, Catalogue, EventKey, Missing, Moment};
use super::schedule::Schedule;
use super::schedule_events::Switch;
use answer::{Call, Found, ProcessCall};
use std::collections::HashMap;
use trace::ctf::{Clock, Event, EventLayout};

/// Results that are errors: -1 to -4095.
const ERRORS: std::ops::RangeInclusive<i64> = -4095..=-1;

/// The system calls of a trace.
pub struct Syscalls {
    clock: Clock,
    by_process: bool,
    events: Vec<(EventKey, EventKind)>,
    calls: Vec<Call>,
    /// By thread: the call that it is in.
    open: HashMap<i64, Open>,
    /// By CPU: the calls since its last switch that do not say themselves whose they are.
    nameless: HashMap<usize, u64>,
    /// Calls of threads that were taken for others.
    mistaken: u64,
    processes: HashMap<(Owner, usize), ProcessCall>,
}

/// What an event is, and what is where in it.
#[derive(Clone, Copy)]
struct EventKind {
    /// The place of the call.
    call: usize,
    edge: Edge,
    /// The contexts that say who it is.
    tid: Option<usize>,
    pid: Option<usize>,
    comm: Option<usize>,
}

#[derive(Clone, Copy)]
enum Edge {
    Entry,
    Exit {
        ret: usize,
        /// The number of a call that is not known.
        id: Option<usize>,
    },
}

/// A call that has not ended yet.
#[derive(Clone, Copy)]
struct Open {
    call: usize,
    since: u64,
    owner: Owner,
}

/// Who made a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Owner {
    Process(i64),
    /// A thread whose process is not known.
    Thread(i64),
    Unknown,
}

impl Syscalls {
    /// Of a trace with these events.
    pub fn new(catalogue: &Catalogue<'_>, by_process: bool) -> Result<Self, Missing> {
        let mut names = HashMap::new();
        let mut calls = Vec::new();
        let mut events = Vec::new();
        for layout in catalogue.events() {
            let Some((name, edge)) = edge(layout) else {
                continue;
            };
            let call = *names.entry(name.clone()).or_insert_with(|| {
                calls.push(Call::new(name));
                calls.len() - 1
            });
            let class = catalogue.class(layout);
            let context = |name| class?.context(name);
            let kind = EventKind {
                call,
                edge,
                tid: context("tid"),
                pid: context("pid"),
                comm: context("procname"),
            };
            events.push((key(layout), kind));
        }
        let missing = |events| Missing {
            option: "--syscalls",
            events,
            record: "-e syscalls,sched_switch,sched_process_fork",
        };
        let has = |entry| {
            let mut kinds = events.iter().map(|(_, kind)| kind);
            kinds.any(|kind| matches!(kind.edge, Edge::Entry) == entry)
        };
        if !has(true) || !has(false) {
            return Err(missing("the entries and exits of system calls"));
        }
        let knows_tid = |(_, kind): &(_, EventKind)| kind.tid.is_some();
        if !catalogue.has_switches() && !events.iter().all(knows_tid) {
            return Err(missing("sched_switch (or the context tid)"));
        }
        Ok(Self {
            clock: catalogue.metadata().clock,
            by_process,
            events,
            calls,
            open: HashMap::new(),
            nameless: HashMap::new(),
            mistaken: 0,
            processes: HashMap::new(),
        })
    }

    fn entry(&mut self, kind: EventKind, tid: Option<i64>, event: &Event<'_>, now: &Moment<'_>) {
        let owner = owner(kind, tid, event, now.schedule);
        self.calls[kind.call].calls += 1;
        if kind.tid.is_none() {
            *self.nameless.entry(now.cpu).or_default() += 1;
        }
        if self.by_process {
            self.process_call(owner, kind, tid, event, now).calls += 1;
        }
        let Some(tid) = tid else { return };
        self.open.remove(&tid);
        let schedule = now.schedule;
        if schedule.is_whole(now.cpu) && (schedule.all_whole() || schedule.runs(tid)) {
            let open = Open {
                call: kind.call,
                since: now.time,
                owner,
            };
            self.open.insert(tid, open);
        }
    }

    fn exit(&mut self, kind: EventKind, tid: Option<i64>, event: &Event<'_>, now: &Moment<'_>) {
        let Edge::Exit { ret, id } = kind.edge else {
            return;
        };
        let open = tid.and_then(|tid| self.open.remove(&tid));
        // The end of rt_sigreturn: the result is a register of what the signal had interrupted.
        if id.is_some_and(|id| integer(event.value(id)) == Some(-1)) {
            return;
        }
        let failed = integer(event.value(ret)).is_some_and(|ret| ERRORS.contains(&ret));
        let call = &mut self.calls[kind.call];
        call.errors += u64::from(failed);
        let open = open.filter(|open| open.call == kind.call && now.schedule.is_whole(now.cpu));
        let took = open.map(|open| self.clock.nanoseconds(now.time.saturating_sub(open.since)));
        if let Some(took) = took {
            call.durations.add(took);
        }
        if self.by_process {
            let owner =
                open.map_or_else(|| owner(kind, tid, event, now.schedule), |open| open.owner);
            let call = self.process_call(owner, kind, tid, event, now);
            call.errors += u64::from(failed);
            if let Some(took) = took {
                call.timed += 1;
                call.total_ns = call.total_ns.saturating_add(took);
                call.max_ns = call.max_ns.max(took);
            }
        }
    }

    /// What a process's calls are counted in. Its name is the last that is known: of its first
    /// thread, else of the one that made the call.
    fn process_call(
        &mut self,
        owner: Owner,
        kind: EventKind,
        tid: Option<i64>,
        event: &Event<'_>,
        now: &Moment<'_>,
    ) -> &mut ProcessCall {
        let call = self.processes.entry((owner, kind.call)).or_default();
        if call.name.is_empty() {
            call.name.clone_from(&self.calls[kind.call].name);
        }
        match owner {
            Owner::Process(pid) => call.pid = Some(pid),
            Owner::Thread(tid) => call.tid = Some(tid),
            Owner::Unknown => {}
        }
        let known = |tid: Option<i64>| now.schedule.comm(tid?);
        let comm = known(call.pid)
            .or_else(|| known(tid))
            .or_else(|| text(event.context(kind.comm?)));
        if let Some(comm) = comm {
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
    fn events(&self) -> Vec<EventKey> {
        self.events.iter().map(|(key, _)| *key).collect()
    }

    fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) {
        let kind = self.events[which].1;
        let own = kind.tid.and_then(|tid| integer(event.context(tid)));
        let tid = own.or_else(|| now.schedule.running(now.cpu));
        match kind.edge {
            Edge::Entry => self.entry(kind, tid, event, now),
            Edge::Exit { .. } => self.exit(kind, tid, event, now),
        }
    }

    fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) {
        let nameless = self.nameless.remove(&now.cpu).unwrap_or(0);
        if let Some(tid) = switch.instead_of {
            self.open.remove(&tid);
            self.mistaken += nameless;
        }
        // It may go on where events are missing.
        if !now.schedule.all_whole() {
            self.open.remove(&switch.prev_tid);
        }
    }

    fn lost(&mut self, schedule: &Schedule) {
        // Who runs elsewhere is not there.
        self.open.retain(|tid, _| schedule.runs(*tid));
    }

    fn answer(self: Box<Self>, _ticks: u64) -> Box<dyn Answer> {
        let Self {
            by_process,
            calls,
            mistaken,
            processes,
            ..
        } = *self;
        let processes = by_process.then(|| processes.into_values().collect());
        Box::new(Found::new(calls, mistaken, processes))
    }
}

/// The call that an event begins or ends.
fn edge(layout: &EventLayout) -> Option<(String, Edge)> {
    let (prefix, name) = match layout.name.strip_prefix("compat_") {
        Some(name) => ("compat_", name),
        None => ("", layout.name.as_str()),
    };
    if let Some(name) = name.strip_prefix("syscall_entry_") {
        return Some((format!("{prefix}{name}"), Edge::Entry));
    }
    let exit = Edge::Exit {
        ret: layout.field("ret")?,
        id: layout.field("id"),
    };
    let name = name.strip_prefix("syscall_exit_")?;
    Some((format!("{prefix}{name}"), exit))
}

fn owner(kind: EventKind, tid: Option<i64>, event: &Event<'_>, schedule: &Schedule) -> Owner {
    let own = kind.pid.and_then(|pid| integer(event.context(pid)));
    match (own.or_else(|| schedule.process(tid?)), tid) {
        (Some(pid), _) => Owner::Process(pid),
        (None, Some(tid)) => Owner::Thread(tid),
        (None, None) => Owner::Unknown,
    }
}
