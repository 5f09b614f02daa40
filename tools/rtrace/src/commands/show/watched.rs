// SPDX-License-Identifier: GPL-2.0

//! What is gathered while lines are printed: the files of descriptors, and the table of system calls.

use super::paths::Paths;
use analysis::schedule::Schedule;
use analysis::schedule_events::Switch;
use analysis::syscalls::Syscalls;
use analysis::{Analysis, Answer, EventKey, Moment};
use ctf::Event;
use serde_json::Value as Json;
use std::fmt;

/// What is gathered; each if it is wanted and the trace has what it takes.
pub struct Watched {
    /// The files of descriptors.
    pub paths: Option<Paths>,
    /// The table of system calls.
    pub summary: Option<Syscalls>,
}

impl Watched {
    fn events_of_paths(&self) -> impl Iterator<Item = EventKey> + '_ {
        self.paths.iter().flat_map(Paths::events)
    }
}

impl Analysis for Watched {
    fn events(&self) -> Vec<EventKey> {
        let summary = self.summary.iter().flat_map(Analysis::events);
        self.events_of_paths().chain(summary).collect()
    }

    fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) {
        let paths = self.events_of_paths().count();
        match (which.checked_sub(paths), &mut self.paths, &mut self.summary) {
            (None, Some(paths), _) => paths.event(which, event, now),
            (Some(which), _, Some(summary)) => summary.event(which, event, now),
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
    }

    fn lost(&mut self, schedule: &Schedule) {
        if let Some(paths) = &mut self.paths {
            paths.lost(schedule);
        }
        if let Some(summary) = &mut self.summary {
            summary.lost(schedule);
        }
    }

    /// The table, if it is wanted.
    fn answer(self: Box<Self>, ticks: u64) -> Box<dyn Answer> {
        let summary = self.summary.map(Box::new);
        Box::new(Table(summary.map(|summary| summary.answer(ticks))))
    }
}

/// The table of system calls, if it is wanted.
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
