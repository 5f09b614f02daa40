// SPDX-License-Identifier: GPL-2.0

//! The questions that can be asked of a trace.

use super::aux::Aux;
use super::cpu::Cpus;
use super::critical_path::CriticalPath;
use super::io::Io;
use super::irq::Irq;
use super::latency::Latency;
use super::locks::Locks;
use super::profile::Profile;
use super::syscalls::Syscalls;
use super::threads::{Sort, Threads};
use super::{Analysis, Catalogue, Missing};
use std::path::Path;
use terminal::date::PointInTime;

/// What is asked of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Which system calls were made; also whose they were.
    Syscalls {
        /// Whether each process is counted by itself, too.
        by_process: bool,
    },
    /// How long threads that were woken waited for a CPU.
    Latency,
    /// What each thread did.
    Threads {
        /// The order of the rows.
        sort: Sort,
    },
    /// What each CPU did.
    Cpu,
    /// Which interrupts were handled.
    Irq,
    /// What was read and written.
    Io,
    /// Which locks threads had to wait for.
    Locks,
    /// Which functions ran.
    Profile,
    /// What other modules wrote beside the events.
    Aux,
    /// What a thread's time went by with, to this point in time, if one is given.
    CriticalPath {
        /// The thread.
        tid: i64,
        /// The point in time.
        to: Option<PointInTime>,
    },
}

impl Question {
    /// Every one that needs no more to be said.
    pub const ALL: [Self; 8] = [
        Self::Syscalls { by_process: true },
        Self::Latency,
        Self::Threads {
            sort: Sort::Running,
        },
        Self::Cpu,
        Self::Irq,
        Self::Io,
        Self::Locks,
        Self::Profile,
    ];

    /// What gathers its answer, of the trace in `dir`. The error is that the trace has no answer.
    pub fn analysis(
        self,
        dir: &Path,
        catalogue: &Catalogue<'_>,
    ) -> Result<Box<dyn Analysis>, Missing> {
        Ok(match self {
            Self::Syscalls { by_process } => Box::new(Syscalls::new(catalogue, by_process)?),
            Self::Latency => Box::new(Latency::new(catalogue)?),
            Self::Threads { sort } => Box::new(Threads::new(catalogue, sort)?),
            Self::Cpu => Box::new(Cpus::new(catalogue)?),
            Self::Irq => Box::new(Irq::new(catalogue)?),
            Self::Io => Box::new(Io::new(catalogue)?),
            Self::Locks => Box::new(Locks::new(catalogue)?),
            Self::Profile => Box::new(Profile::new(catalogue, dir)?),
            Self::Aux => Box::new(Aux::new(catalogue, dir)?),
            Self::CriticalPath { tid, to } => Box::new(CriticalPath::new(catalogue, tid, to)?),
        })
    }
}
