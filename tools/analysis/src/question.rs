// SPDX-License-Identifier: GPL-2.0

//! The questions that a report answers.

use super::aux::Aux;
use super::cpu::Cpus;
use super::critical_path::CriticalPath;
use super::io::{FileSort, Io};
use super::irq::Irq;
use super::latency::Latency;
use super::locks::Locks;
use super::maps::Maps;
use super::profile::Profile;
use super::syscalls::{By, Syscalls};
use super::threads::{Sort, Threads};
use super::{Catalogue, Missing, SendAnalysis};
use std::path::Path;
use terminal::date::PointInTime;

/// A question about a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// The system calls of the trace.
    Syscalls {
        /// Rows of the second table.
        by: By,
    },
    /// The time from the wake-up of threads until they run.
    Latency,
    /// The activity of each thread.
    Threads {
        /// The order of the rows.
        sort: Sort,
    },
    /// The activity of each CPU.
    Cpu,
    /// The interrupts that were handled.
    Irq,
    /// The data that was read and written.
    Io {
        /// The order of the files.
        sort: FileSort,
    },
    /// The locks that threads had to wait for.
    Locks,
    /// The functions that ran.
    Profile,
    /// The maps that were counted meanwhile.
    Maps,
    /// The data that other modules recorded beside the events.
    Aux,
    /// The critical path of a thread. If `to` is given, the path ends there.
    CriticalPath {
        /// The thread.
        tid: i64,
        /// The point in time.
        to: Option<PointInTime>,
    },
}

impl Question {
    /// Every question about the events of a trace without further arguments.
    pub const ALL: [Self; 8] = [
        Self::Syscalls { by: By::Process },
        Self::Latency,
        Self::Threads {
            sort: Sort::Running,
        },
        Self::Cpu,
        Self::Irq,
        Self::Io {
            sort: FileSort::Time,
        },
        Self::Locks,
        Self::Profile,
    ];

    /// Creates the analysis that answers the question, for the trace in `dir`. Returns an error if the
    /// trace has no answer.
    pub fn analysis(
        self,
        dir: &Path,
        catalogue: &Catalogue<'_>,
    ) -> Result<SendAnalysis<'static>, Missing> {
        Ok(match self {
            Self::Syscalls { by } => Box::new(Syscalls::new(catalogue, by)?),
            Self::Latency => Box::new(Latency::new(catalogue)?),
            Self::Threads { sort } => Box::new(Threads::new(catalogue, sort)?),
            Self::Cpu => Box::new(Cpus::new(catalogue)?),
            Self::Irq => Box::new(Irq::new(catalogue)?),
            Self::Io { sort } => Box::new(Io::new(catalogue, sort)?),
            Self::Locks => Box::new(Locks::new(catalogue)?),
            Self::Profile => Box::new(Profile::new(catalogue, dir)?),
            Self::Maps => Box::new(Maps::new(dir, catalogue.metadata())?),
            Self::Aux => Box::new(Aux::new(catalogue, dir)?),
            Self::CriticalPath { tid, to } => Box::new(CriticalPath::new(catalogue, tid, to)?),
        })
    }
}
