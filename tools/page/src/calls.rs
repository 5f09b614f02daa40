// SPDX-License-Identifier: GPL-2.0

//! When each thread was in which system call. An entry and an exit are one call as
//! `rtrace report --syscalls` has it.

use analysis::schedule::Schedule;
use analysis::schedule_events::Switch;
use analysis::syscalls::{edge, Edge, Names, Which, ERRORS};
use analysis::tasks::{Life, Serial};
use analysis::{integer, key, Catalogue, EventKey, Moment};
use ctf::Event;
use std::collections::HashMap;

/// The system calls of a trace at a moment.
#[derive(Debug)]
pub struct Calls {
    events: Vec<(EventKey, Kind)>,
    /// The names of the calls.
    pub names: Names,
    /// By thread: the place of the call that it is in, and since when.
    open: HashMap<Serial, (u32, u64)>,
}

/// What an event is.
#[derive(Clone, Copy, Debug)]
struct Kind {
    call: Which,
    edge: Edge,
}

/// A call that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The thread that made it: its id, and which of the threads that had it.
    pub thread: (i64, Life),
    /// The place of its name.
    pub call: u32,
    /// When it began, in clock ticks.
    pub from: u64,
    /// Whether it failed.
    pub failed: bool,
}

impl Calls {
    /// Of a trace with these events.
    pub fn new(catalogue: &Catalogue<'_>) -> Self {
        let (mut names, mut events) = (Names::default(), Vec::new());
        for layout in catalogue.events() {
            let Some((name, edge)) = edge(layout) else {
                continue;
            };
            let call = names.which(name);
            events.push((key(layout), Kind { call, edge }));
        }
        Self {
            events,
            names,
            open: HashMap::new(),
        }
    }

    /// The events that it is made from. Each is known by its place in this list.
    pub fn events(&self) -> Vec<EventKey> {
        self.events.iter().map(|(key, _)| *key).collect()
    }

    /// One of these events; if a call ends with it, which.
    pub fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) -> Option<Call> {
        let kind = self.events[which].1;
        let schedule = now.schedule;
        let task = now.task?;
        // The idle task makes no calls.
        let serial = task.serial?;
        let open = self.open.remove(&serial);
        let place = self.names.place(kind.call, event) as u32;
        match kind.edge {
            Edge::Entry => {
                if schedule.is_whole(now.cpu) && (schedule.all_whole() || schedule.runs(task.tid)) {
                    self.open.insert(serial, (place, now.time));
                }
                None
            }
            Edge::Exit { ret, id } => {
                let (call, from) = open?;
                // The end of rt_sigreturn says nothing of it.
                let is_return = id.is_some_and(|id| integer(event.value(id)) == Some(-1));
                let is_it = self.names.is_end_of(place as usize, call as usize)
                    && !is_return
                    && schedule.is_whole(now.cpu);
                let ret = integer(event.value(ret));
                is_it.then_some(Call {
                    thread: (task.tid, task.life),
                    call,
                    from,
                    failed: ret.is_some_and(|ret| ERRORS.contains(&ret)),
                })
            }
        }
    }

    /// A CPU went from one task to another.
    pub fn switch(&mut self, switch: &Switch<'_>, schedule: &Schedule) {
        // Where events are missing it may go on. If it has ended, its last call does not return.
        let is_gone = !schedule.all_whole() || switch.left.is_end();
        let gone = switch.instead_of.into_iter();
        for tid in gone.chain(is_gone.then_some(switch.prev_tid)) {
            if let Some(serial) = schedule.serial(tid) {
                self.open.remove(&serial);
            }
        }
    }

    /// On a CPU events may be missing from here on.
    pub fn lost(&mut self, schedule: &Schedule) {
        let runners = schedule.runners();
        self.open.retain(|serial, _| runners.contains(serial));
    }
}
