// SPDX-License-Identifier: GPL-2.0

//! The functions of programs in a trace that is being recorded.

use super::programs::{Place, Programs};
use super::recorder::Recorder;
use ctf::Clock;

/// Programs whose changes are recorded at the same time.
pub struct LivePrograms {
    recorder: Recorder,
    /// Number of bytes of the recorder's lines that were read.
    read: u64,
    programs: Programs,
}

impl LivePrograms {
    /// The programs by the changes of this recorder.
    pub fn new(recorder: Recorder) -> Self {
        let mut programs = Programs::default();
        programs.read_vdso();
        Self {
            recorder,
            read: 0,
            programs,
        }
    }

    /// Takes all changes that have happened. `clock` is that of the trace.
    ///
    /// # Errors
    ///
    /// The recorder's lines cannot be read.
    pub fn renew(&mut self, clock: &Clock) -> anyhow::Result<()> {
        let changes = self.recorder.changes(&mut self.read, clock)?;
        self.programs.add(changes);
        Ok(())
    }

    /// See [`Symbols::user`](super::Symbols::user).
    pub fn find(&mut self, tid: i64, ns: u64, address: u64) -> Option<Place<'_>> {
        self.programs.find(tid, ns, address)
    }
}
