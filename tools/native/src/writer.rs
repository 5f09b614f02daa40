// SPDX-License-Identifier: GPL-2.0

//! What is measured: writers of records, in some scenarios.

use crate::{memcpy, rtrace, ust};
use anyhow::{Context, Result};
use rtrace_record::clock::TraceClock;
use rtrace_record::format::{CompactMonotonic, CompactTsc};
use rustix::thread::{sched_setaffinity, CpuSet};
use rustix::time::{clock_gettime, ClockId};
use serde::Serialize;
use std::time::Duration;

/// The CPU of the writer.
pub const WRITER_CPU: usize = 0;
/// The CPU of the reader, if there is a second one.
const READER_CPU: usize = 1;

/// Something that writes records.
pub trait Writer {
    /// Writes so many.
    fn fire(&mut self, records: u64);

    /// Stops it. Fails if a record is not accounted for.
    fn finish(self: Box<Self>) -> Result<Outcome>;
}

/// What became of all the records of a writer.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Outcome {
    /// Records that were to be written, those of signal handlers among them.
    pub fired: u64,
    /// Records written.
    pub recorded: u64,
    /// Records refused.
    pub lost: u64,
    /// Records that a reader took out.
    pub read: u64,
    /// Signals that fired records.
    pub signals: u64,
}

/// A writer in a scenario.
pub struct Case {
    /// The scenario.
    pub scenario: Scenario,
    /// The writer's name.
    pub writer: &'static str,
    /// Bytes of a record, header included.
    pub bytes: u64,
    /// Makes the writer.
    pub make: Box<dyn Fn() -> Result<Box<dyn Writer>>>,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.scenario.name(), self.writer, self.bytes)
    }
}

/// What goes on around the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// A flight recorder of 4 x 1 MiB that goes round and round.
    Overwrite,
    /// The same with 4 x 4 KiB: how much changing the sub-buffer costs.
    Switch,
    /// Each other record is written in the middle of another.
    Nested,
    /// A timer signal writes records, too.
    Signal,
    /// A reader on another CPU moves packets into a file, as fast as it can. Overwrite mode, so
    /// that every record is written, however fast it is.
    Reader,
    /// The buffer is full: each record is refused and counted.
    Full,
}

impl Scenario {
    /// All.
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

    /// Whether instructions mean something: nothing comes in from outside.
    pub fn is_quiet(self) -> bool {
        !matches!(self, Self::Signal | Self::Reader)
    }

    /// Records after which all comes round again: those of a packet where packets matter.
    pub fn round(self) -> u64 {
        match self {
            Self::Switch => 182,
            _ => 40,
        }
    }

    /// The sizes of records it is measured with.
    pub fn sizes(self) -> &'static [u64] {
        match self {
            Self::Overwrite => &[6, 22, 60],
            // Of a fixed size, and with a text.
            Self::Full => &[6, 22],
            _ => &[22],
        }
    }
}

/// How often a timer signal comes.
pub const SIGNAL_PERIOD_US: u32 = 100;

/// All the cases of this process: those of lttng-ust where the environment has its provider
/// (`RTRACE_UST_PROVIDER`, a library), the scenario that the session is made for
/// (`RTRACE_UST_SCENARIO`) and its clock (`RTRACE_UST_CLOCK`, tsc or mono); else our own.
pub fn cases() -> Result<Vec<Case>> {
    let Some(provider) = std::env::var_os("RTRACE_UST_PROVIDER") else {
        return Ok(own_cases());
    };
    let name = std::env::var("RTRACE_UST_SCENARIO").context("RTRACE_UST_SCENARIO")?;
    let scenario = Scenario::by_name(&name).context("no such scenario")?;
    let writer = match std::env::var("RTRACE_UST_CLOCK").as_deref() {
        Ok("tsc") => "lttng-ust-tsc",
        _ => "lttng-ust-mono",
    };
    let provider = ust::Provider::load(&provider)?;
    Ok(scenario
        .sizes()
        .iter()
        .map(|&bytes| Case {
            scenario,
            writer,
            bytes,
            make: Box::new(move || Ok(Box::new(provider.writer(scenario, bytes)?))),
        })
        .collect())
}

fn own_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for scenario in Scenario::ALL {
        for &bytes in scenario.sizes() {
            let mut add = |writer, make: Box<dyn Fn() -> Result<Box<dyn Writer>>>| {
                cases.push(Case {
                    scenario,
                    writer,
                    bytes,
                    make,
                });
            };
            if scenario == Scenario::Overwrite {
                add("memcpy", Box::new(move || memcpy::writer::<false>(bytes)));
                add(
                    "memcpy+tsc",
                    Box::new(move || memcpy::writer::<true>(bytes)),
                );
            }
            add(
                "rtrace-tsc",
                Box::new(move || rtrace::writer::<CompactTsc>(TraceClock::tsc(), scenario, bytes)),
            );
            add(
                "rtrace-mono",
                Box::new(move || {
                    rtrace::writer::<CompactMonotonic>(TraceClock::monotonic(), scenario, bytes)
                }),
            );
        }
    }
    cases
}

/// How long this thread has run on a CPU.
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

/// Binds this thread to a reader's CPU, as far as there is one.
pub(crate) fn pin_reader() {
    let _ = pin(READER_CPU);
}
