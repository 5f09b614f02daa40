// SPDX-License-Identifier: GPL-2.0

//! `rtrace report`: what a trace holds.

use crate::analysis::losses::Damaged;
use crate::analysis::summary::Summary;
use crate::analysis::{pass, text, Analysis, Catalogue, Question};
use crate::new_file::NewFile;
use crate::page::{Page, Timeline};
use crate::progress;
use crate::terminal::{bytes, harmless_json, print, say};
use anyhow::Context;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use trace::ctf::Trace;

/// What becomes of the answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Text, with at most so many rows in a table.
    Text { rows: usize },
    /// One JSON object.
    Json,
    /// A page in this file.
    Page(PathBuf, bool),
}

/// Prints what the trace in `dir` holds, or the answers to the questions, if there are any. A page has
/// both; without a question, the answers to all that the trace has an answer to.
pub fn report(dir: &Path, questions: &[Question], output: &Output) -> anyhow::Result<()> {
    let trace = Trace::open(dir)?;
    let bar = progress::reading(&trace)?;
    let progress = |bytes| bar.inc(bytes);
    let said = match output {
        Output::Page(file, force) => {
            let new = NewFile::create(file, *force).with_context(cannot_write(file))?;
            page(dir, &trace, questions, (file, new), progress)
        }
        _ if questions.is_empty() => summarise(dir, &trace, output, progress),
        _ => answer(dir, &trace, questions, output, progress),
    };
    bar.finish_and_clear();
    let (text, warnings, verdict) = said?;
    warnings.iter().for_each(say);
    print(&text)?;
    Ok(verdict?)
}

/// The text to print, what is odd about the trace, and whether it is damaged.
type Said = (String, Vec<String>, Result<(), Damaged>);

/// What the trace holds, and what is odd about it.
fn summarise(
    dir: &Path,
    trace: &Trace,
    output: &Output,
    progress: impl Fn(u64),
) -> anyhow::Result<Said> {
    let summary = Summary::of(dir, trace, progress)?;
    let text = match output {
        Output::Text { rows } => text::render(&summary, *rows)?,
        _ => harmless_json(serde_json::to_string_pretty(&summary)? + "\n"),
    };
    Ok((text, summary.warnings, summary.losses.verdict()))
}

/// The answers to questions about the trace, and what is odd about it.
fn answer(
    dir: &Path,
    trace: &Trace,
    questions: &[Question],
    output: &Output,
    progress: impl Fn(u64),
) -> anyhow::Result<Said> {
    let catalogue = Catalogue::new(&trace.metadata);
    let analyses = analyses(dir, questions, &catalogue)?;
    let answers = pass::read(dir, trace, &catalogue, analyses, progress)?;
    let text = match output {
        Output::Text { rows } => answers.text(*rows)?,
        _ => harmless_json(serde_json::to_string_pretty(&answers.object()?)? + "\n"),
    };
    Ok((text, answers.warnings, answers.losses.verdict()))
}

fn cannot_write(file: &Path) -> impl Fn() -> String + '_ {
    move || format!("cannot write {}", file.display())
}

/// Writes a page of the trace. What to say of it, and what is odd about the trace.
fn page(
    dir: &Path,
    trace: &Trace,
    questions: &[Question],
    (file, new): (&Path, NewFile),
    progress: impl Fn(u64),
) -> anyhow::Result<Said> {
    let catalogue = Catalogue::new(&trace.metadata);
    let mut timeline = Timeline::new(&catalogue);
    let mut left_out = Vec::new();
    let mut analyses = if questions.is_empty() {
        let all = Question::ALL.iter();
        let all = all.map(|question| question.analysis(dir, &catalogue));
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
    let mut out = BufWriter::new(new.file());
    let written = page.write(&mut out).and_then(|()| out.flush());
    written.with_context(cannot_write(file))?;
    drop(out);
    let size = new
        .file()
        .metadata()
        .with_context(cannot_write(file))?
        .len();
    new.commit().with_context(cannot_write(file))?;
    let text = format!(
        "{}: a page of {}\n{}",
        file.display(),
        bytes(size),
        answers.close()?.trim_start()
    );
    Ok((text, answers.warnings, answers.losses.verdict()))
}

/// What answers the questions about the trace in `dir`.
fn analyses(
    dir: &Path,
    questions: &[Question],
    catalogue: &Catalogue<'_>,
) -> anyhow::Result<Vec<Box<dyn Analysis>>> {
    let asked = questions.iter();
    let analyses = asked.map(|question| question.analysis(dir, catalogue));
    let analyses = analyses.collect::<Result<_, _>>();
    analyses.with_context(|| dir.display().to_string())
}
