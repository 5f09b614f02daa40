// SPDX-License-Identifier: GPL-2.0

//! Requests to block devices, requests of io_uring, and reads and writes of processes (`--io`).

mod answer;
pub mod files;
mod request_events;
pub mod requests;
mod uring;

use super::schedule::Schedule;
use super::schedule_events::Switch;
use super::uring::Uring;
use crate::{key, Analysis, Answer, Catalogue, EventKey, Missing, Moment};
pub(crate) use answer::IoAnswer;
use ctf::Event;
pub use files::FileSort;
use files::Files;
use requests::Requests;
use uring::UringFigures;

/// The call that gives requests of io_uring to the kernel.
const ENTER: &str = "syscall_entry_io_uring_enter";

/// Analysis of the input and output of a trace.
pub struct Io {
    requests: Option<Requests>,
    /// Number of events of the requests. The numbers of the files' events follow, then those of io_uring, then the call
    /// io_uring_enter.
    request_events: usize,
    files: Option<Files>,
    file_events: usize,
    uring: Option<(Uring, UringFigures)>,
    uring_events: usize,
    /// The begin of io_uring_enter, and how often it occurred.
    enter: Option<EventKey>,
    enters: u64,
    sort: FileSort,
}

impl Io {
    /// Creates the analysis for a trace with these events.
    pub fn new(catalogue: &Catalogue<'_>, sort: FileSort) -> Result<Self, Missing> {
        let requests = Requests::new(catalogue);
        let files = Files::new(catalogue);
        let uring = Uring::new(catalogue);
        let clock = catalogue.metadata().clock;
        let io = Self {
            request_events: requests.iter().flat_map(Requests::events).count(),
            requests,
            file_events: files.iter().flat_map(Files::events).count(),
            files,
            uring_events: uring.iter().flat_map(Uring::events).count(),
            uring: uring.map(|uring| (uring, UringFigures::new(clock))),
            enter: catalogue.event(ENTER).map(key),
            enters: 0,
            sort,
        };
        if io.requests.is_none() && io.files.is_none() && io.uring.is_none() {
            return Err(Missing {
                option: "--io",
                events: "block_rq_issue and block_rq_complete, or system calls and sched_switch, or io_uring",
                record:
                    "-e 'block:block_rq_*' -e io_uring -e syscalls,sched_switch,sched_process_fork,sched_process_exit"
                        .into(),
            });
        }
        Ok(io)
    }

    /// Processes an event of io_uring.
    fn uring(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) {
        let Some((uring, figures)) = &mut self.uring else {
            return;
        };
        let files = self.files.as_ref();
        let seen = uring.event(which, event, now, |owner, fd| {
            files.and_then(|files| files.file(owner, fd, now.time))
        });
        figures.add(&seen, now.time);
        if let (Some(files), Some(posted)) = (&mut self.files, &seen.posted) {
            files.posted(posted, now.time);
        }
    }
}

impl Analysis for Io {
    fn cost(&self) -> u32 {
        10
    }

    fn events(&self) -> Vec<EventKey> {
        let requests = self.requests.iter().flat_map(Requests::events);
        let files = self.files.iter().flat_map(Files::events);
        let uring = self.uring.iter().flat_map(|(uring, _)| uring.events());
        requests
            .chain(files)
            .chain(uring)
            .chain(self.enter)
            .collect()
    }

    fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) {
        let Some(which) = which.checked_sub(self.request_events) else {
            let requests = self.requests.as_mut();
            return drop(requests.map(|requests| requests.event(which, event, now)));
        };
        let Some(which) = which.checked_sub(self.file_events) else {
            let files = self.files.as_mut();
            return files.map_or((), |files| files.event(which, event, now));
        };
        if which < self.uring_events {
            self.uring(which, event, now);
        } else {
            self.enters += 1;
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
        if let Some((uring, figures)) = &mut self.uring {
            let rest = uring.rest();
            rest.iter().for_each(|request| figures.add_open(request));
        }
    }

    fn answer(self: Box<Self>, ticks: u64) -> Box<dyn Answer> {
        let requests = self.requests.map(|requests| requests.found(ticks));
        let files = self.files.map(|files| files.found(self.sort));
        let uring = self.uring.map(|(mut uring, mut figures)| {
            let rest = uring.rest();
            rest.iter().for_each(|request| figures.add_open(request));
            figures.found()
        });
        Box::new(IoAnswer::new(requests, files, uring, self.enters))
    }
}
