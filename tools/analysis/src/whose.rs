// SPDX-License-Identifier: GPL-2.0

//! Whose an event is.

use super::tasks::{Life, Serial};
use super::{integer, text};
use ctf::{Event, StreamClass};

/// The contexts of a channel that say whose its events are, by their numbers there.
#[derive(Clone, Copy, Debug)]
pub struct Whose {
    tid: Option<usize>,
    pid: Option<usize>,
    comm: Option<usize>,
}

/// The values of these contexts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Own<'a> {
    /// The thread; 0 is the idle task.
    pub tid: Option<i64>,
    /// Its process.
    pub pid: Option<i64>,
    /// Its name.
    pub comm: Option<&'a [u8]>,
}

/// The task that an event happened to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task<'a> {
    /// Its thread id; 0 is the idle task of the CPU.
    pub tid: i64,
    /// The thread itself; none: the idle task.
    pub serial: Option<Serial>,
    /// Which of the threads that had the id.
    pub life: Life,
    /// Its process, if that is known.
    pub process: Option<i64>,
    /// Its name at that time, if that is known.
    pub comm: Option<&'a [u8]>,
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
    /// The owner of what a task does.
    pub fn of(task: Option<&Task<'_>>) -> Self {
        match task {
            Some(Task {
                process: Some(pid), ..
            }) => Self::Process(*pid),
            Some(task) => Self::Thread(task.tid),
            None => Self::Unknown,
        }
    }

    /// The process, if it is known.
    pub fn pid(self) -> Option<i64> {
        match self {
            Self::Process(pid) => Some(pid),
            Self::Thread(_) | Self::Unknown => None,
        }
    }

    /// The id of the process or thread.
    pub fn id(self) -> Option<i64> {
        match self {
            Self::Process(id) | Self::Thread(id) => Some(id),
            Self::Unknown => None,
        }
    }
}

/// The name of an event's task, if it is recorded beside the event. A name without an id names no known thread.
pub fn recorded_comm<'a>(event: &Event<'a>) -> Option<&'a [u8]> {
    Whose::of(event.class).read(event).comm
}

impl Whose {
    /// Of the events of a channel.
    pub fn of(class: &StreamClass) -> Self {
        Self {
            tid: class.context("tid"),
            pid: class.context("pid"),
            comm: class.context("procname"),
        }
    }

    /// Whether the event itself says which thread it is.
    pub fn has_tid(&self) -> bool {
        self.tid.is_some()
    }

    /// The event's own account of its task.
    pub fn read<'a>(&self, event: &Event<'a>) -> Own<'a> {
        let context = |place: Option<usize>| event.context(place?);
        Own {
            tid: integer(context(self.tid)),
            pid: integer(context(self.pid)),
            comm: text(context(self.comm)).filter(|comm| !comm.is_empty()),
        }
    }
}
