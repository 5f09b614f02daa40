// SPDX-License-Identifier: GPL-2.0

//! The owner of an event: its thread and process.

use super::tasks::{Life, Serial};
use super::{integer, text};
use ctf::{Event, StreamClass};

/// Contexts of a channel that name the thread of its events, by their indexes.
#[derive(Clone, Copy, Debug)]
pub struct Whose {
    tid: Option<usize>,
    pid: Option<usize>,
    comm: Option<usize>,
}

/// Values of these contexts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Own<'a> {
    /// The thread; 0 is the idle task.
    pub tid: Option<i64>,
    /// Process of the thread.
    pub pid: Option<i64>,
    /// Name of the thread.
    pub comm: Option<&'a [u8]>,
}

/// The task that an event happened to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task<'a> {
    /// Thread id; 0 is the idle task of the CPU.
    pub tid: i64,
    /// Serial of the thread; `None` for the idle task.
    pub serial: Option<Serial>,
    /// Life of the thread's id.
    pub life: Life,
    /// Process of the thread, if it is known.
    pub process: Option<i64>,
    /// Name at that time, if it is known.
    pub comm: Option<&'a [u8]>,
}

/// The owner of an operation, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// A process.
    Process(i64),
    /// A thread whose process is not known.
    Thread(i64),
    /// The owner is not known.
    Unknown,
}

impl Owner {
    /// Returns the owner of a task's operations.
    pub fn of(task: Option<&Task<'_>>) -> Self {
        match task {
            Some(Task {
                process: Some(pid), ..
            }) => Self::Process(*pid),
            Some(task) => Self::Thread(task.tid),
            None => Self::Unknown,
        }
    }

    /// Returns the process, if it is known.
    pub fn pid(self) -> Option<i64> {
        match self {
            Self::Process(pid) => Some(pid),
            Self::Thread(_) | Self::Unknown => None,
        }
    }

    /// Returns the id of the process or thread.
    pub fn id(self) -> Option<i64> {
        match self {
            Self::Process(id) | Self::Thread(id) => Some(id),
            Self::Unknown => None,
        }
    }
}

/// Returns the name of an event's task, if it is recorded beside the event. A name without an id belongs to
/// no known thread.
pub fn recorded_comm<'a>(event: &Event<'a>) -> Option<&'a [u8]> {
    Whose::of(event.class).read(event).comm
}

impl Whose {
    /// Finds the contexts of a channel's events.
    pub fn of(class: &StreamClass) -> Self {
        Self {
            tid: class.context("tid"),
            pid: class.context("pid"),
            comm: class.context("procname"),
        }
    }

    /// Returns whether the events have any of these contexts.
    pub fn has_any(&self) -> bool {
        self.tid.is_some() || self.pid.is_some() || self.comm.is_some()
    }

    /// Returns whether the events record their thread.
    pub fn has_tid(&self) -> bool {
        self.tid.is_some()
    }

    /// Reads the values that the event records for its task.
    pub fn read<'a>(&self, event: &Event<'a>) -> Own<'a> {
        let context = |place: Option<usize>| event.context(place?);
        Own {
            tid: integer(context(self.tid)),
            pid: integer(context(self.pid)),
            comm: text(context(self.comm)).filter(|comm| !comm.is_empty()),
        }
    }
}
