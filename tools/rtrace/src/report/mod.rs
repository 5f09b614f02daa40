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

use crate::page::{Draft, Page, Timeline};
use crate::progress;
use crate::terminal::{bytes, print, say};
use analysis::{Analysis, Catalogue, Missing};
use anyhow::Context;
use cpu::Cpus;
use critical_path::CriticalPath;
use io::Io;
use irq::Irq;
use latency::Latency;
use locks::Locks;
use std::path::{Path, PathBuf};
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

/// What becomes of the answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Text, with at most so many rows in a table.
    Text { rows: usize },
    /// One JSON object.
    Json,
    /// A page in this file.
    Page(PathBuf),
}

impl Question {
    /// Every one that needs no more to be said.
    const ALL: [Self; 7] = [
        Self::Syscalls { by_process: true },
        Self::Latency,
        Self::Threads,
        Self::Cpu,
        Self::Irq,
        Self::Io,
        Self::Locks,
    ];

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

/// Prints what the trace in `dir` holds, or the answers to the questions, if there are any. A page has
/// both; without a question, the answers to all that the trace has an answer to.
pub fn report(dir: &Path, questions: &[Question], output: &Output) -> anyhow::Result<()> {
    let trace = Trace::open(dir)?;
    let bar = progress::reading(&trace)?;
    let progress = |bytes| bar.inc(bytes);
    let said = match output {
        Output::Page(file) => page(dir, &trace, questions, file, progress),
        _ if questions.is_empty() => summarise(dir, &trace, output, progress),
        _ => answer(dir, &trace, questions, output, progress),
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
    output: &Output,
    progress: impl Fn(u64),
) -> anyhow::Result<(String, Vec<String>)> {
    let summary = Summary::of(dir, trace, progress)?;
    let text = match output {
        Output::Text { rows } => text::render(&summary, *rows)?,
        _ => serde_json::to_string_pretty(&summary)? + "\n",
    };
    Ok((text, summary.warnings))
}

/// The answers to questions about the trace, and what is odd about it.
fn answer(
    dir: &Path,
    trace: &Trace,
    questions: &[Question],
    output: &Output,
    progress: impl Fn(u64),
) -> anyhow::Result<(String, Vec<String>)> {
    let catalogue = Catalogue::new(&trace.metadata);
    let analyses = analyses(dir, questions, &catalogue)?;
    let answers = pass::read(dir, trace, &catalogue, analyses, progress)?;
    let text = match output {
        Output::Text { rows } => answers.text(*rows)?,
        _ => serde_json::to_string_pretty(&answers.object()?)? + "\n",
    };
    Ok((text, answers.warnings))
}

/// Writes a page of the trace. What to say of it, and what is odd about the trace.
fn page(
    dir: &Path,
    trace: &Trace,
    questions: &[Question],
    file: &Path,
    progress: impl Fn(u64),
) -> anyhow::Result<(String, Vec<String>)> {
    let cannot = || format!("cannot write {}", file.display());
    let draft = Draft::of(file).with_context(cannot)?;
    let catalogue = Catalogue::new(&trace.metadata);
    let mut timeline = Timeline::new(&catalogue);
    let mut left_out = Vec::new();
    let mut analyses = if questions.is_empty() {
        let all = Question::ALL.iter();
        let all = all.map(|question| question.analysis(&catalogue));
        all.filter_map(|analysis| {
            analysis
                .map_err(|missing| left_out.push(missing.to_string()))
                .ok()
        })
        .collect()
    } else {
        analyses(dir, questions, &catalogue)?
    };
    analyses.push(timeline.gather());
    let answers = pass::read(dir, trace, &catalogue, analyses, progress)?;
    let page = Page {
        timeline: &timeline,
        report: serde_json::to_value(answers.object()?)?,
        left_out,
        losses: answers.close()?,
        clock: trace.metadata.clock,
        begin: answers.extent.begin(),
    };
    let size = draft.write(|out| page.write(out)).with_context(cannot)?;
    let text = format!(
        "{}: a page of {}\n{}",
        file.display(),
        bytes(size),
        answers.close()?.trim_start()
    );
    Ok((text, answers.warnings))
}

/// What answers the questions about the trace in `dir`.
fn analyses(
    dir: &Path,
    questions: &[Question],
    catalogue: &Catalogue<'_>,
) -> anyhow::Result<Vec<Box<dyn Analysis>>> {
    let asked = questions.iter();
    let analyses = asked.map(|question| question.analysis(catalogue));
    let analyses = analyses.collect::<Result<_, _>>();
    analyses.with_context(|| dir.display().to_string())
}
