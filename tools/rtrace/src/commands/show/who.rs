// SPDX-License-Identifier: GPL-2.0

//! The task of an event.

use analysis::choice::Chosen;
use analysis::tasks::Serial;
use analysis::whose::{Owner, Task};
use system::printing;

/// The task of an event, as far as it is known.
#[derive(Clone, Debug, Default)]
pub struct Who {
    /// The thread's id.
    pub tid: Option<i64>,
    /// The thread itself. `None` for the idle task.
    pub serial: Option<Serial>,
    /// The id of the process.
    pub pid: Option<i64>,
    /// The name of the thread.
    pub comm: Option<String>,
}

impl Who {
    /// The owner of the task's descriptors.
    pub fn owner(&self) -> Owner {
        match (self.pid, self.tid) {
            (Some(pid), _) => Owner::Process(pid),
            (None, Some(tid)) => Owner::Thread(tid),
            (None, None) => Owner::Unknown,
        }
    }

    /// Whether an event of the task at this time is in the chosen part of the trace.
    pub fn is_in(&self, chosen: &Chosen, time: u64) -> bool {
        let comm = self.comm.as_ref().map(String::as_bytes);
        chosen.has_event(time, self.tid, self.pid, comm)
    }

    /// Converts the task of an event.
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
            comm: comm.map(|comm| printing::text(comm).into_owned()),
        }
    }
}
