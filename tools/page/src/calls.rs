// SPDX-License-Identifier: GPL-2.0

//! When each thread was in which system call. An entry and an exit are one call as
//! `rtrace report --syscalls` has it.

use analysis::begun::{Begun, Doer};
use analysis::schedule::Schedule;
use analysis::schedule_events::Switch;
use analysis::syscalls::{edge, Edge, Names, Which, ERRORS};
use analysis::tasks::Life;
use analysis::{key, Catalogue, EventKey, Moment};
use ctf::Event;

/// The system calls of a trace at a moment.
#[derive(Debug)]
pub struct Calls {
    events: Vec<(EventKey, Kind)>,
    /// The names of the calls.
    pub names: Names,
    /// By thread: the place of the call that it is in.
    open: Begun<(), u32>,
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
            open: Begun::default(),
        }
    }

    /// The events that it is made from. Each is known by its place in this list.
    pub fn events(&self) -> Vec<EventKey> {
        self.events.iter().map(|(key, _)| *key).collect()
    }

    /// One of these events; if a call ends with it, which.
    pub fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) -> Option<Call> {
        let kind = self.events[which].1;
        let task = now.task?;
        // The idle task makes no calls.
        let thread = Doer::Thread(task.serial?);
        let place = self.names.place(kind.call, event) as u32;
        match kind.edge {
            Edge::Entry => {
                self.open.begin(thread, (), place, now);
                None
            }
            Edge::Exit { .. } => {
                let open = self.open.end(thread, &(), now)?;
                let ret = kind.edge.result(event)?;
                let call = open.what;
                let is_it = self.names.is_end_of(place as usize, call as usize);
                is_it.then_some(Call {
                    thread: (task.tid, task.life),
                    call,
                    from: open.since,
                    failed: ERRORS.contains(&ret),
                })
            }
        }
    }

    /// A CPU went from one task to another.
    pub fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) {
        self.open.switch(switch, now);
        // The last call of a thread does not return.
        self.open.ended(switch, now);
    }

    /// On a CPU events may be missing from here on.
    pub fn lost(&mut self, schedule: &Schedule) {
        self.open.lost(schedule);
    }
}
