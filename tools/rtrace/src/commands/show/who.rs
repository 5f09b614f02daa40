// SPDX-License-Identifier: GPL-2.0

//! Whose an event is.

use analysis::tasks::Serial;
use analysis::whose::{Owner, Task};

/// Whose an event is, as far as that is known.
#[derive(Clone, Debug, Default)]
pub struct Who {
    /// The thread's id.
    pub tid: Option<i64>,
    /// The thread itself; none: the idle task.
    pub serial: Option<Serial>,
    /// Its process.
    pub pid: Option<i64>,
    /// Its name.
    pub comm: Option<String>,
}

impl Who {
    /// Whose its descriptors are.
    pub fn owner(&self) -> Owner {
        match (self.pid, self.tid) {
            (Some(pid), _) => Owner::Process(pid),
            (None, Some(tid)) => Owner::Thread(tid),
            (None, None) => Owner::Unknown,
        }
    }

    /// The task that an event happened to.
    pub fn of(task: Option<Task<'_>>) -> Self {
        let Some(task) = task else {
            return Self::default();
        };
        let comm = match task.tid {
            0 => Some(b"swapper".as_slice()),
            _ => task.comm,
        };
        Self {
            tid: Some(task.tid),
            serial: task.serial,
            pid: task.process,
            comm: comm.map(|comm| String::from_utf8_lossy(comm).into_owned()),
        }
    }
}
