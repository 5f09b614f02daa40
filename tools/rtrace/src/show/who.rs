// SPDX-License-Identifier: GPL-2.0

//! Whose an event is.

use crate::analysis::dispatch::Dispatch;
use crate::analysis::whose::Owner;
use crate::analysis::{integer, text, Analysis};
use trace::ctf::Event;

/// Whose an event is, as far as that is known.
#[derive(Clone, Debug, Default)]
pub struct Who {
    /// The thread.
    pub tid: Option<i64>,
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

    /// What an event of a stream says itself, or who runs on its CPU.
    pub fn of<A: Analysis>(dispatch: &Dispatch<A>, stream: usize, event: &Event<'_>) -> Self {
        let context = |name| event.context(event.class.context(name)?);
        let schedule = dispatch.schedule();
        let running = || schedule.running(dispatch.cpu(stream)?);
        let tid = integer(context("tid")).or_else(running);
        let pid = integer(context("pid")).or_else(|| schedule.process(tid?));
        let comm = text(context("procname")).or_else(|| match tid? {
            0 => Some(b"swapper"),
            tid => schedule.comm(tid),
        });
        let comm = comm.map(|comm| String::from_utf8_lossy(comm).into_owned());
        Self { tid, pid, comm }
    }
}
