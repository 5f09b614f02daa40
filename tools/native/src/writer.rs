// SPDX-License-Identifier: GPL-2.0

//! A writer to measure, and the scenarios.

use anyhow::{Context, Result};
use rustix::thread::{sched_setaffinity, CpuSet};
use rustix::time::{clock_gettime, ClockId};
use serde::Serialize;
use std::time::Duration;

/// The CPU of the writer.
pub const WRITER_CPU: usize = 0;
/// The CPU of the reader, if there is a second one.
const READER_CPU: usize = 1;

/// A writer of records.
pub trait Writer {
    /// Writes `records` records.
    fn fire(&mut self, records: u64);

    /// Stops the writer. Fails if a record is not accounted for.
    fn finish(self: Box<Self>) -> Result<Outcome>;
}

/// Numbers of a writer's records.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Outcome {
    /// Records to write, including those of signal handlers.
    pub fired: u64,
    /// Records that were written.
    pub recorded: u64,
    /// Records that were refused.
    pub lost: u64,
    /// Records that a reader took.
    pub read: u64,
    /// Signals that fired records.
    pub signals: u64,
}

/// The activity around the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// A flight recorder of 4 x 1 MiB, with continuous overwriting.
    Overwrite,
    /// As `Overwrite`, with 4 x 4 KiB: shows the cost of a switch of the sub-buffer.
    Switch,
    /// Each second record is written in the middle of another record.
    Nested,
    /// A timer signal also writes records.
    Signal,
    /// A reader on another CPU moves packets into a file, as fast as it can. Overwrite mode, so that each
    /// record is written even if the writer is faster.
    Reader,
    /// The buffer is full: each record is refused and counted.
    Full,
}

impl Scenario {
    /// All scenarios.
    pub const ALL: [Self; 6] = [
        Self::Overwrite,
        Self::Switch,
        Self::Nested,
        Self::Signal,
        Self::Reader,
        Self::Full,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Overwrite => "overwrite",
            Self::Switch => "switch",
            Self::Nested => "nested",
            Self::Signal => "signal",
            Self::Reader => "reader",
            Self::Full => "full",
        }
    }

    fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Whether the number of instructions is meaningful: no signal and no reader interferes.
    pub fn is_quiet(self) -> bool {
        !matches!(self, Self::Signal | Self::Reader)
    }

    /// Number of records after which the buffer's state repeats: those of a packet, if packets matter.
    pub fn round(self) -> u64 {
        match self {
            Self::Switch => 182,
            _ => 40,
        }
    }

    /// The sizes of records to measure.
    pub fn sizes(self) -> &'static [u64] {
        match self {
            Self::Overwrite => &[6, 22, 60],
            // One of fixed size, and one with a text.
            Self::Full => &[6, 22],
            _ => &[22],
        }
    }
}

/// Period of the timer signal.
pub const SIGNAL_PERIOD_US: u32 = 100;

/// CPU time of this thread.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Binds this thread to `cpu`.
pub fn pin(cpu: usize) -> Result<()> {
    let mut cpus = CpuSet::new();
    cpus.set(cpu);
    sched_setaffinity(None, &cpus).with_context(|| format!("cannot run on CPU {cpu}"))
}

/// Binds this thread to a reader's CPU, if there is one.
pub(crate) fn pin_reader() {
    let _ = pin(READER_CPU);
}
