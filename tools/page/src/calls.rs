// SPDX-License-Identifier: GPL-2.0

//! System calls of each thread over time. An entry and an exit form one call as in `rtrace report --syscalls`.

use analysis::schedule::Schedule;
use analysis::schedule_events::Switch;
use analysis::syscalls::{Pairs, ERRORS};
use analysis::tasks::Life;
use analysis::{Catalogue, EventKey, Moment};
use ctf::Event;

/// System calls while the trace is read.
#[derive(Debug)]
pub struct Calls(Pairs<()>);

/// A call that has ended.
#[derive(Clone, Copy, Debug)]
pub struct EndedCall {
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
        Self(Pairs::new(catalogue.events()))
    }

    /// Returns the events that begin or end calls.
    pub fn events(&self) -> Vec<EventKey> {
        self.0.events()
    }

    /// Returns the names of the calls, by place.
    pub fn names(&self) -> &[String] {
        self.0.names()
    }

    /// Takes one of these events. Returns the call that ends with it, if one does.
    pub fn event(&mut self, event: &Event<'_>, now: &Moment<'_>) -> Option<EndedCall> {
        let seen = self.0.event(event, now)?;
        if seen.is_entry {
            self.0.begin(seen.name, (), now);
        }
        let (task, begun) = (now.task?, seen.begun?);
        Some(EndedCall {
            thread: (task.tid, task.life),
            call: begun.name as u32,
            from: begun.since,
            failed: ERRORS.contains(&seen.ret?),
        })
    }

    /// Takes a switch of a CPU from one task to another.
    pub fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) {
        self.0.switch(switch, now);
    }

    /// Takes the time from which events of a CPU may be missing.
    pub fn lost(&mut self, schedule: &Schedule) {
        self.0.lost(schedule);
    }
}
