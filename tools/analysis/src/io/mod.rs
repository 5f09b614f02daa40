// SPDX-License-Identifier: GPL-2.0

//! Requests to block devices, and reads and writes of processes (`--io`).

mod answer;
pub mod files;
mod request_events;
pub mod requests;

use super::schedule::Schedule;
use super::schedule_events::Switch;
use crate::{Analysis, Answer, Catalogue, EventKey, Missing, Moment};
pub(crate) use answer::IoAnswer;
use ctf::Event;
pub use files::FileSort;
use files::Files;
use requests::Requests;

/// Analysis of the input and output of a trace.
pub struct Io {
    requests: Option<Requests>,
    /// Number of events of the requests. The numbers of the files' events follow.
    request_events: usize,
    files: Option<Files>,
    sort: FileSort,
}

impl Io {
    /// Creates the analysis for a trace with these events.
    pub fn new(catalogue: &Catalogue<'_>, sort: FileSort) -> Result<Self, Missing> {
        let requests = Requests::new(catalogue);
        let io = Self {
            request_events: requests.iter().flat_map(Requests::events).count(),
            requests,
            files: Files::new(catalogue),
            sort,
        };
        if io.requests.is_none() && io.files.is_none() {
            return Err(Missing {
                option: "--io",
                events: "block_rq_issue and block_rq_complete, or system calls and sched_switch",
                record:
                    "-e 'block:block_rq_*' -e syscalls,sched_switch,sched_process_fork,sched_process_exit"
                        .into(),
            });
        }
        Ok(io)
    }
}

impl Analysis for Io {
    fn cost(&self) -> u32 {
        10
    }

    fn events(&self) -> Vec<EventKey> {
        let requests = self.requests.iter().flat_map(Requests::events);
        requests
            .chain(self.files.iter().flat_map(Files::events))
            .collect()
    }

    fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) {
        match (
            which.checked_sub(self.request_events),
            &mut self.requests,
            &mut self.files,
        ) {
            (None, Some(requests), _) => drop(requests.event(which, event, now)),
            (Some(which), _, Some(files)) => files.event(which, event, now),
            _ => {}
        }
    }

    fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) {
        if let Some(files) = &mut self.files {
            files.switch(switch, now);
        }
    }

    fn lost(&mut self, schedule: &Schedule, _time: u64) {
        if let Some(requests) = &mut self.requests {
            requests.lost();
        }
        if let Some(files) = &mut self.files {
            files.lost(schedule);
        }
    }

    fn answer(self: Box<Self>, ticks: u64) -> Box<dyn Answer> {
        let requests = self.requests.map(|requests| requests.found(ticks));
        let files = self.files.map(|files| files.found(self.sort));
        Box::new(IoAnswer::new(requests, files))
    }
}
