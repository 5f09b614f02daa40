// SPDX-License-Identifier: GPL-2.0

//! Number, failures and duration of the system calls (`--syscalls`).
//!
//! An entry and an exit are one call if the same thread made both, and no event of the thread in between
//! may be missing. The thread is the one that runs on the CPU, unless the record has the context `tid`.
//!
//! A call counts at its entry. An exit whose entry is not known is no call: the call began before the trace, or
//! counts already.

mod answer;
mod names;
mod pairs;

use super::schedule::Schedule;
use super::schedule_events::Switch;
use super::tasks::Life;
use super::whose::Owner;
use crate::recent::Recent;
use crate::{integer, key, Analysis, Answer, Catalogue, EventKey, Missing, Moment};
use ahash::{HashMap, HashMapExt};
pub(crate) use answer::SyscallsAnswer;
use answer::{by_name, ProcessCall, SyscallRow};
use ctf::{Clock, Event, EventLayout, Type};
pub use names::{is_end_of, CallName, Names, Which};
pub use pairs::{Open, Pairs, Seen};
use std::mem::take;
use system::printing;

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
    /// The events, and whether their records have a thread id.
    events: Vec<(EventKey, bool)>,
    /// The calls, each with its owner.
    pairs: Pairs<Owner>,
    /// Calls by the index of their name.
    calls: Vec<SyscallRow>,
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

impl Syscalls {
    /// Creates the analysis for a trace with these events.
    pub fn new(catalogue: &Catalogue<'_>, by: By) -> Result<Self, Missing> {
        let pairs = Pairs::new(catalogue.events());
        let layouts = catalogue
            .events()
            .filter_map(|layout| Some((layout, edge(layout)?.1)));
        let (mut events, mut has_entry, mut has_exit) = (Vec::new(), false, false);
        for (layout, edge) in layouts {
            let is_entry = matches!(edge, Edge::Entry);
            has_entry |= is_entry;
            has_exit |= !is_entry;
            events.push((key(layout), catalogue.says_thread(layout)));
        }
        // The smallest recording that is enough.
        let calls = pairs.names();
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
        if !has_entry || !has_exit {
            return Err(missing("the entries and exits of system calls"));
        }
        if !catalogue.has_switches() && !events.iter().all(|(_, says_thread)| *says_thread) {
            return Err(missing("sched_switch (or the context tid)"));
        }
        Ok(Self {
            clock: catalogue.metadata().clock,
            by,
            events,
            pairs,
            calls: Vec::new(),
            nameless: Vec::new(),
            mistaken: 0,
            processes: Vec::new(),
            places: HashMap::new(),
            recent: Recent::default(),
        })
    }

    fn entry(&mut self, call: usize, says_thread: bool, now: &Moment<'_>) {
        let owner = now.owner();
        self.calls[call].calls += 1;
        if !says_thread {
            if self.nameless.len() <= now.cpu {
                self.nameless.resize(now.cpu + 1, 0);
            }
            self.nameless[now.cpu] += 1;
        }
        if self.by != By::Call {
            self.process_call(owner, call, now).calls += 1;
        }
        self.pairs.begin(call, owner, now);
    }

    fn exit(&mut self, ret: i64, begun: Open<Owner>, now: &Moment<'_>) {
        let failed = ERRORS.contains(&ret);
        let took = now.time.saturating_sub(begun.since);
        let took = self.clock.nanoseconds(took);
        let call = &mut self.calls[begun.name];
        call.errors += u64::from(failed);
        call.durations.add(took);
        if self.by != By::Call {
            let call = self.process_call(begun.what, begun.name, now);
            call.errors += u64::from(failed);
            call.timed += 1;
            call.total_ns = call.total_ns.saturating_add(took);
            call.max_ns = call.max_ns.max(took);
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
                call.comm = Some(printing::text(comm).into_owned());
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
        let Some(seen) = self.pairs.event(event, now) else {
            return;
        };
        let new = self.pairs.names().iter().skip(self.calls.len());
        self.calls.extend(new.cloned().map(SyscallRow::new));
        if seen.is_entry {
            self.entry(seen.name, self.events[which].1, now);
        } else if let Some((ret, begun)) = seen.ret.zip(seen.begun) {
            self.exit(ret, begun, now);
        }
    }

    fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) {
        let nameless = self.nameless.get_mut(now.cpu).map_or(0, take);
        if switch.instead_of.is_some() {
            self.mistaken += nameless;
        }
        self.pairs.switch(switch, now);
    }

    fn lost(&mut self, schedule: &Schedule, _time: u64) {
        self.pairs.lost(schedule);
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
        Box::new(SyscallsAnswer::new(calls, mistaken, processes, names))
    }
}

/// The event of LTTng before 2.6 that ends every call.
pub const COMMON_EXIT: &str = "exit_syscall";

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
    if layout.name == COMMON_EXIT {
        return Some((CallName::OfBegin, exit));
    }
    let name = name.strip_prefix("syscall_exit_")?;
    Some((named(name), exit))
}
