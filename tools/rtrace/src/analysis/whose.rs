// SPDX-License-Identifier: GPL-2.0

//! Whose an event is: the thread's that runs on its CPU, unless its contexts say it themselves.

use super::schedule::Schedule;
use super::{integer, text, Catalogue, Moment};
use trace::ctf::{Event, EventLayout};

/// The contexts of an event that say whose it is, by their numbers in its stream class.
#[derive(Clone, Copy, Debug)]
pub struct Whose {
    tid: Option<usize>,
    pid: Option<usize>,
    comm: Option<usize>,
}

/// Whose something is, as far as that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// A process.
    Process(i64),
    /// A thread whose process is not known.
    Thread(i64),
    /// Nobody knows.
    Unknown,
}

impl Owner {
    /// The process, if it is known.
    pub fn pid(self) -> Option<i64> {
        match self {
            Self::Process(pid) => Some(pid),
            Self::Thread(_) | Self::Unknown => None,
        }
    }
}

impl Whose {
    /// Of an event with this layout.
    pub fn new(catalogue: &Catalogue<'_>, layout: &EventLayout) -> Self {
        let context = |name| catalogue.class(layout)?.context(name);
        Self {
            tid: context("tid"),
            pid: context("pid"),
            comm: context("procname"),
        }
    }

    /// Whether the event itself says which thread it is.
    pub fn has_tid(&self) -> bool {
        self.tid.is_some()
    }

    /// The thread; 0 is the idle task.
    pub fn tid(&self, event: &Event<'_>, now: &Moment<'_>) -> Option<i64> {
        let own = self.tid.and_then(|tid| integer(event.context(tid)));
        own.or_else(|| now.schedule.running(now.cpu))
    }

    /// Its process, or at least the thread.
    pub fn owner(&self, tid: Option<i64>, event: &Event<'_>, schedule: &Schedule) -> Owner {
        let own = self.pid.and_then(|pid| integer(event.context(pid)));
        match (own.or_else(|| schedule.process(tid?)), tid) {
            (Some(pid), _) => Owner::Process(pid),
            (None, Some(tid)) => Owner::Thread(tid),
            (None, None) => Owner::Unknown,
        }
    }

    /// The last known name of a thread.
    pub fn name<'a>(
        &self,
        tid: Option<i64>,
        event: &Event<'a>,
        schedule: &'a Schedule,
    ) -> Option<&'a [u8]> {
        let known = schedule.comm(tid?);
        known.or_else(|| text(event.context(self.comm?)))
    }

    /// The name of a process: that of its first thread, else of the thread `tid`.
    pub fn comm<'a>(
        &self,
        owner: Owner,
        tid: Option<i64>,
        event: &Event<'a>,
        schedule: &'a Schedule,
    ) -> Option<&'a [u8]> {
        let first = owner.pid().and_then(|pid| schedule.comm(pid));
        first.or_else(|| self.name(tid, event, schedule))
    }
}
