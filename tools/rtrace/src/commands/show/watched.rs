// SPDX-License-Identifier: GPL-2.0

//! Data gathered while lines are printed: which calls end, the files of descriptors, the requests of io_uring, and the
//! table of system calls.

use super::arguments::EventKind;
use super::paths::Paths;
use super::requests::Shown;
use analysis::begun::Begun;
use analysis::schedule::Schedule;
use analysis::schedule_events::Switch;
use analysis::syscalls::{edge, Syscalls};
use analysis::uring::Uring;
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
    /// The requests of io_uring.
    pub uring: Option<Uring>,
    /// Requests that have ended since the last line.
    pub requests: Vec<Shown>,
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
            uring: Uring::new(catalogue),
            requests: Vec::new(),
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

    /// The requests that have no result at the end of the trace, or at a place where events may be missing.
    pub fn open_requests(&mut self) {
        let open = self.uring.as_mut().map(Uring::rest);
        self.requests
            .extend(open.into_iter().flatten().map(Shown::Open));
    }

    fn request(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) {
        let Some(uring) = &mut self.uring else {
            return;
        };
        let paths = &mut self.paths;
        let seen = uring.event(which, event, now, |owner, fd| {
            paths.as_mut()?.file(owner, fd, now.time)
        });
        self.requests.extend(seen.cut.map(Shown::Open));
        if let Some(posted) = seen.posted {
            if let Some(paths) = paths {
                paths.posted(&posted);
            }
            self.requests.push(Shown::Posted(posted));
        }
    }

    fn events_of_paths(&self) -> impl Iterator<Item = EventKey> + '_ {
        self.paths.iter().flat_map(Paths::events)
    }
}

impl Analysis for Watched {
    fn events(&self) -> Vec<EventKey> {
        let uring = self.uring.iter().flat_map(Uring::events);
        let summary = self.summary.iter().flat_map(Analysis::events);
        let events = self.events_of_paths().chain(uring).chain(summary);
        events.chain(self.events.iter().copied()).collect()
    }

    fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) {
        let paths = self.events_of_paths().count();
        let Some(which) = which.checked_sub(paths) else {
            let paths = self.paths.as_mut();
            return paths.map_or((), |paths| paths.event(which, event, now));
        };
        let uring = self.uring.iter().flat_map(Uring::events).count();
        let Some(which) = which.checked_sub(uring) else {
            return self.request(which, event, now);
        };
        if let Some(summary) = self.summary.as_mut().filter(|_| self.is_counted) {
            if which < summary.events().len() {
                summary.event(which, event, now);
            }
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
        self.open_requests();
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
