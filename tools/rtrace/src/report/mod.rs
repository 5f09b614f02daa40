// SPDX-License-Identifier: GPL-2.0

//! `rtrace report`: what a trace holds.

pub mod analysis;
mod begun;
mod busy;
mod calls;
mod cpu;
mod critical_path;
pub mod dispatch;
mod durations;
pub mod head;
pub mod interrupts;
mod io;
mod irq;
mod latency;
mod locks;
mod longest;
pub mod losses;
mod pass;
pub mod schedule;
pub mod schedule_events;
pub mod summary;
pub mod syscalls;
pub mod text;
mod threads;
mod whose;

use crate::progress;
use crate::terminal::{print, say};
use analysis::{Analysis, Catalogue, Missing};
use anyhow::Context;
use cpu::Cpus;
use critical_path::CriticalPath;
use io::Io;
use irq::Irq;
use latency::Latency;
use locks::Locks;
use std::path::Path;
use summary::Summary;
use syscalls::Syscalls;
use threads::Threads;
use trace::ctf::Trace;

/// What is asked of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Which system calls were made; also whose they were.
    Syscalls { by_process: bool },
    /// How long threads that were woken waited for a CPU.
    Latency,
    /// What each thread did.
    Threads,
    /// What each CPU did.
    Cpu,
    /// Which interrupts were handled.
    Irq,
    /// What was read and written.
    Io,
    /// Which locks threads had to wait for.
    Locks,
    /// What a thread's time went by with, to this time of the day, in nanoseconds, if one is given.
    CriticalPath { tid: i64, to: Option<u64> },
}

impl Question {
    fn analysis(self, catalogue: &Catalogue<'_>) -> Result<Box<dyn Analysis>, Missing> {
        Ok(match self {
            Self::Syscalls { by_process } => Box::new(Syscalls::new(catalogue, by_process)?),
            Self::Latency => Box::new(Latency::new(catalogue)?),
            Self::Threads => Box::new(Threads::new(catalogue)?),
            Self::Cpu => Box::new(Cpus::new(catalogue)?),
            Self::Irq => Box::new(Irq::new(catalogue)?),
            Self::Io => Box::new(Io::new(catalogue)?),
            Self::Locks => Box::new(Locks::new(catalogue)?),
            Self::CriticalPath { tid, to } => Box::new(CriticalPath::new(catalogue, tid, to)?),
        })
    }
}

/// Prints what the trace in `dir` holds, or the answers to the questions, if there are any, with at
/// most `rows` rows in a table.
pub fn report(dir: &Path, questions: &[Question], json: bool, rows: usize) -> anyhow::Result<()> {
    let trace = Trace::open(dir)?;
    let bar = progress::reading(&trace)?;
    let progress = |bytes| bar.inc(bytes);
    let said = if questions.is_empty() {
        summarise(dir, &trace, json, rows, progress)
    } else {
        answer(dir, &trace, questions, json, rows, progress)
    };
    bar.finish_and_clear();
    let (text, warnings) = said?;
    warnings.iter().for_each(say);
    Ok(print(&text)?)
}

/// What the trace holds, and what is odd about it.
fn summarise(
    dir: &Path,
    trace: &Trace,
    json: bool,
    rows: usize,
    progress: impl Fn(u64),
) -> anyhow::Result<(String, Vec<String>)> {
    let summary = Summary::of(dir, trace, progress)?;
    let text = if json {
        serde_json::to_string_pretty(&summary)? + "\n"
    } else {
        text::render(&summary, rows)?
    };
    Ok((text, summary.warnings))
}

/// The answers to questions about the trace, and what is odd about it.
fn answer(
    dir: &Path,
    trace: &Trace,
    questions: &[Question],
    json: bool,
    rows: usize,
    progress: impl Fn(u64),
) -> anyhow::Result<(String, Vec<String>)> {
    let catalogue = Catalogue::new(&trace.metadata);
    let asked = questions.iter();
    let analyses = asked.map(|question| question.analysis(&catalogue));
    let analyses = analyses.collect::<Result<_, _>>();
    let analyses = analyses.with_context(|| dir.display().to_string())?;
    let answers = pass::read(dir, trace, &catalogue, analyses, progress)?;
    let text = if json {
        answers.json()? + "\n"
    } else {
        answers.text(rows)?
    };
    Ok((text, answers.warnings))
}
