// SPDX-License-Identifier: GPL-2.0

//! System calls of each thread over time. An entry and an exit form one call as in `rtrace report --syscalls`.

use analysis::begun::{Begun, Doer};
use analysis::schedule::Schedule;
use analysis::schedule_events::Switch;
use analysis::syscalls::{edge, Edge, Names, Which, ERRORS};
use analysis::tasks::Life;
use analysis::{key, Catalogue, EventKey, Moment};
use ctf::Event;

/// Open system calls while the trace is read.
#[derive(Debug)]
pub struct Calls {
    events: Vec<(EventKey, Kind)>,
    /// The names of the calls.
    pub names: Names,
    /// Open call of each thread, as the place of its name.
    open: Begun<(), u32>,
}

/// Meaning of an event.
#[derive(Clone, Copy, Debug)]
struct Kind {
    call: Which,
    edge: Edge,
}

/// A call that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The calling thread: its id, and the life of this id.
    pub thread: (i64, Life),
    /// The place of its name.
    pub call: u32,
    /// Begin of the call, in clock ticks.
    pub from: u64,
    /// Whether the call failed.
    pub failed: bool,
}

impl Calls {
    /// For a trace with these events.
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

    /// Returns the events that begin or end calls. `event` takes the place in this list.
    pub fn events(&self) -> Vec<EventKey> {
        self.events.iter().map(|(key, _)| *key).collect()
    }

    /// Takes one of these events. Returns the call that ends with it, if one does.
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

    /// Takes a switch of a CPU from one task to another.
    pub fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) {
        self.open.switch(switch, now);
        // A thread that exits does not return from its last call.
        self.open.ended(switch, now);
    }

    /// Takes the time from which events of a CPU may be missing.
    pub fn lost(&mut self, schedule: &Schedule) {
        self.open.lost(schedule);
    }
}
