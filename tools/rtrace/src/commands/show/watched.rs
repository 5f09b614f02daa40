// SPDX-License-Identifier: GPL-2.0

//! Data gathered while lines are printed: which calls end, the files of descriptors, and the table of system calls.

use super::arguments::EventKind;
use super::paths::Paths;
use analysis::begun::Begun;
use analysis::schedule::Schedule;
use analysis::schedule_events::Switch;
use analysis::syscalls::{edge, Syscalls};
use analysis::{key, Analysis, Answer, Catalogue, EventKey, Moment};
use ctf::Event;
use serde_json::Value as Json;
use std::fmt;

/// Gathered data. A part is absent if the user does not want it or the trace lacks its events.
pub struct Watched {
    /// The files of descriptors.
    pub paths: Option<Paths>,
    /// Whether the next event counts in the table.
    pub is_counted: bool,
    /// The table of system calls.
    pub summary: Option<Syscalls>,
    /// The begins and ends of calls.
    events: Vec<EventKey>,
    /// The threads that are in a call.
    calls: Begun<(), ()>,
}

impl Watched {
    /// Gathers data of a trace with these events.
    pub fn new(catalogue: &Catalogue<'_>, paths: Option<Paths>, summary: Option<Syscalls>) -> Self {
        let calls = catalogue.events().filter(|layout| edge(layout).is_some());
        Self {
            paths,
            is_counted: true,
            summary,
            events: calls.map(key).collect(),
            calls: Begun::default(),
        }
    }

    /// Whether an event of this kind ends the last call that its thread began. No event between the two is missing.
    pub fn ends(&mut self, kind: EventKind, now: &Moment<'_>) -> bool {
        let Some(doer) = now.doer() else {
            return false;
        };
        match kind {
            EventKind::Event => false,
            EventKind::Entry(_) => {
                self.calls.begin(doer, (), (), now);
                false
            }
            EventKind::Exit { .. } => self.calls.end(doer, &(), now).is_some(),
        }
    }

    fn events_of_paths(&self) -> impl Iterator<Item = EventKey> + '_ {
        self.paths.iter().flat_map(Paths::events)
    }
}

impl Analysis for Watched {
    fn events(&self) -> Vec<EventKey> {
        let summary = self.summary.iter().flat_map(Analysis::events);
        let events = self.events_of_paths().chain(summary);
        events.chain(self.events.iter().copied()).collect()
    }

    fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) {
        let paths = self.events_of_paths().count();
        match (which.checked_sub(paths), &mut self.paths, &mut self.summary) {
            (None, Some(paths), _) => paths.event(which, event, now),
            (Some(which), _, Some(summary)) if which < summary.events().len() => {
                if self.is_counted {
                    summary.event(which, event, now);
                }
            }
            _ => {}
        }
    }

    fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) {
        if let Some(paths) = &mut self.paths {
            paths.switch(switch, now);
        }
        if let Some(summary) = &mut self.summary {
            summary.switch(switch, now);
        }
        self.calls.switch(switch, now);
        self.calls.ended(switch, now);
    }

    fn lost(&mut self, schedule: &Schedule, time: u64) {
        if let Some(paths) = &mut self.paths {
            paths.lost(schedule);
        }
        if let Some(summary) = &mut self.summary {
            summary.lost(schedule, time);
        }
        self.calls.lost(schedule);
    }

    /// The table, if it is printed.
    fn answer(self: Box<Self>, ticks: u64) -> Box<dyn Answer> {
        let summary = self.summary.map(Box::new);
        Box::new(Table(summary.map(|summary| summary.answer(ticks))))
    }
}

/// The table of system calls, if it is printed.
struct Table(Option<Box<dyn Answer>>);

impl Answer for Table {
    fn name(&self) -> &'static str {
        "summary"
    }

    fn json(&self) -> serde_json::Result<Json> {
        self.0.as_ref().map_or(Ok(Json::Null), |table| table.json())
    }

    fn text(&self, out: &mut String, rows: usize) -> fmt::Result {
        self.0
            .as_ref()
            .map_or(Ok(()), |table| table.text(out, rows))
    }
}
