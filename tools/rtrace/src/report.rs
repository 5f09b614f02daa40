// SPDX-License-Identifier: GPL-2.0

//! `rtrace report`: what a trace holds.

use crate::args::wrong;
use crate::schema::Schema;
use analysis::choice::Part;
use analysis::form::{Explained, Questions};
use analysis::loss::Damaged;
use analysis::summary::Summary;
use analysis::why::{self, Who};
use analysis::{pass, summary_text, Answer, Catalogue, Question, SendAnalysis};
use anyhow::{anyhow, bail, Context};
use export::{Choice, Target};
use page::{Details, Page, Server, Stacks, Timeline};
use std::io::Write;
use std::path::Path;
use store::Trace;
use terminal::budget::{Budget, Size};
use terminal::{bytes, print, progress, say};

/// Destination and form of the answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Text of this size.
    Text(Size),
    /// One JSON object.
    Json(Option<Budget>),
    /// A page.
    Page(Target),
    /// A page from a server, until a signal ends it.
    Served,
}

impl Output {
    /// Creates a text, or JSON.
    pub fn new(is_json: bool, rows: usize, budget: Option<Budget>) -> Self {
        match is_json {
            true => Self::Json(budget),
            false => Self::Text(Size::new(rows, budget)),
        }
    }

    fn budget(&self) -> Option<Budget> {
        match self {
            Self::Json(budget) => *budget,
            _ => None,
        }
    }
}

/// Prints a summary of the chosen part of the trace in `dir`, or the answers to the questions, if there are any. A page
/// has both, of the whole trace. Without a question, a page answers all questions that the trace can answer.
pub fn report(
    dir: &Path,
    questions: &[Question],
    choice: &Choice,
    output: &Output,
) -> anyhow::Result<()> {
    let trace = Trace::open(dir)?;
    let mut part = choice.part.clone();
    if !choice.patterns.is_empty() {
        part.events = Some(choice.events(&trace.metadata)?);
    }
    let choice = &part;
    let bar = progress::reading(trace.bytes)?;
    let progress = |bytes| bar.inc(bytes);
    let outcome = match output {
        Output::Page(target) => page(dir, &trace, questions, target, progress),
        Output::Served => {
            let gathered = Gathered::read(dir, &trace, questions, progress)?;
            bar.finish_and_clear();
            return serve(&trace, &gathered);
        }
        _ if questions.is_empty() => summarise(dir, &trace, choice, output, progress),
        _ => answer(dir, &trace, (questions, choice), output, progress),
    };
    bar.finish_and_clear();
    let (text, warnings, verdict) = outcome?;
    warnings.iter().for_each(say);
    match output {
        // Standard output already has the page, so the text goes to standard error.
        Output::Page(Target::Stdout) => say(text.trim_end()),
        _ => print(&text)?,
    }
    Ok(verdict?)
}

/// The text to print, the warnings about the trace, and whether the trace is damaged.
type Outcome = (String, Vec<String>, Result<(), Damaged>);

/// Summarises the trace. Returns the warnings too.
fn summarise(
    dir: &Path,
    trace: &Trace,
    choice: &Part,
    output: &Output,
    progress: impl Fn(u64),
) -> anyhow::Result<Outcome> {
    let summary = Summary::of(dir, trace, choice, progress)?;
    let text = match output {
        Output::Text(size) => size.text(|rows| summary_text::render(&summary, rows))?,
        _ => Schema::Summary.json(&summary, output.budget())?,
    };
    Ok((text, summary.warnings, summary.losses.verdict()))
}

/// Answers questions about the trace. Returns the warnings too.
fn answer(
    dir: &Path,
    trace: &Trace,
    (questions, choice): (&[Question], &Part),
    output: &Output,
    progress: impl Fn(u64),
) -> anyhow::Result<Outcome> {
    let catalogue = Catalogue::new(&trace.metadata);
    let analyses = analyses(dir, questions, &catalogue)?;
    let answers = pass::read(dir, trace, &catalogue, analyses, choice, progress)?;
    check(dir, &answers)?;
    let text = match output {
        Output::Text(size) => size.text(|rows| answers.text(rows))?,
        _ => Schema::Report.json(&answers.object::<Questions>()?, output.budget())?,
    };
    Ok((text, answers.warnings, answers.losses.verdict()))
}

/// Prints the causes of the waits of the threads that `who` names, in a part of the trace. The first pass over the trace
/// finds the threads.
pub fn why(dir: &Path, who: Option<&Who>, part: &Part, output: &Output) -> anyhow::Result<()> {
    let trace = Trace::open(dir)?;
    let catalogue = Catalogue::new(&trace.metadata);
    let bar = progress::reading(trace.bytes.saturating_mul(2))?;
    let progress = |bytes| bar.inc(bytes);
    let mut threads = Vec::new();
    let gather = why::Threads::new(&catalogue, &mut threads);
    let gather = gather.with_context(|| dir.display().to_string())?;
    let gather = vec![Box::new(gather) as _];
    let range = pass::read(dir, &trace, &catalogue, gather, part, progress)?.extent;
    let Some(who) = who else {
        bar.finish_and_clear();
        return Err(wrong(why::ask(&threads)).into());
    };
    let threads = why::find(&threads, who);
    let threads = threads.map_err(|lack| anyhow!("{}: {lack}", dir.display()))?;
    let analysis = why::Why::new(&catalogue, dir, threads, range)?;
    let analysis = vec![Box::new(analysis) as _];
    let all = Part::default();
    let answers = pass::read(dir, &trace, &catalogue, analysis, &all, progress)?;
    let answers = answers.within(range, dir, &trace);
    bar.finish_and_clear();
    answers.warnings.iter().for_each(say);
    print(&match output {
        Output::Text(size) => size.text(|rows| answers.text(rows))?,
        _ => Schema::Why.json(&answers.object::<Explained>()?, output.budget())?,
    })?;
    Ok(answers.losses.verdict()?)
}

/// Fails if the trace in `dir` lacks the object of a question. A damaged trace may have lost it: then what can be read is
/// shown.
fn check(dir: &Path, answers: &pass::Answers) -> anyhow::Result<()> {
    let lack = answers.answers().find_map(Answer::lacks);
    match (lack, answers.losses.verdict()) {
        (Some(lack), Ok(())) => bail!("{}: {lack}", dir.display()),
        _ => Ok(()),
    }
}

/// Contents of a page of a trace.
struct Gathered {
    timeline: Timeline,
    answers: pass::Answers,
    /// The reasons for which questions were left out.
    left_out: Vec<String>,
}

impl Gathered {
    fn read(
        dir: &Path,
        trace: &Trace,
        questions: &[Question],
        progress: impl Fn(u64),
    ) -> anyhow::Result<Self> {
        let catalogue = Catalogue::new(&trace.metadata);
        let stacks = Stacks::new(dir, &trace.metadata);
        let mut timeline = Timeline::new(&catalogue, stacks);
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
        if questions.is_empty() {
            // Most traces have no maps, and lack nothing without them.
            analyses.extend(Question::Maps.analysis(dir, &catalogue).ok());
        }
        analyses.push(timeline.gather());
        let all = Part::default();
        let answers = pass::read(dir, trace, &catalogue, analyses, &all, progress)?;
        check(dir, &answers)?;
        Ok(Self {
            timeline,
            answers,
            left_out,
        })
    }

    fn write(
        &self,
        trace: &Trace,
        details: Option<&Details<'_>>,
        is_served: bool,
        mut out: impl Write,
    ) -> anyhow::Result<()> {
        let page = Page {
            timeline: &self.timeline,
            report: serde_json::to_value(self.answers.object::<Questions>()?)?,
            left_out: self.left_out.clone(),
            losses: self.answers.close()?,
            clock: trace.metadata.clock,
            begin: self.answers.extent.begin(),
            end: self.answers.extent.end(),
            recorded: self.answers.losses.recorded,
            details,
            is_served,
        };
        Ok(page.write(&mut out)?)
    }
}

/// Writes a page of the trace. Returns the message to print and the warnings about the trace.
fn page(
    dir: &Path,
    trace: &Trace,
    questions: &[Question],
    target: &Target,
    progress: impl Fn(u64),
) -> anyhow::Result<Outcome> {
    let failed = || format!("cannot write {target}");
    let mut out = target.open(true)?;
    let gathered = Gathered::read(dir, trace, questions, progress)?;
    let answers = &gathered.answers;
    let begin = answers.extent.begin();
    let details = match gathered.timeline.is_merged() {
        true => Some(Details::new(trace, &gathered.timeline, begin)?),
        false => None,
    };
    let written = gathered.write(trace, details.as_ref(), false, out.writer());
    written.with_context(failed)?;
    let size = out.finish().with_context(failed)?;
    let size = size.map_or(String::new(), |size| format!(" of {}", bytes(size)));
    let close = answers.close()?;
    let text = format!("{target}: a page{size}\n{}", close.trim_start());
    let verdict = answers.losses.verdict();
    Ok((text, gathered.answers.warnings, verdict))
}

/// Serves a page of the trace until a signal ends the process.
fn serve(trace: &Trace, gathered: &Gathered) -> anyhow::Result<()> {
    let answers = &gathered.answers;
    answers.warnings.iter().for_each(say);
    let details = Details::new(trace, &gathered.timeline, answers.extent.begin())?;
    let mut page = Vec::new();
    gathered.write(trace, Some(&details), true, &mut page)?;
    let server = Server::new().context("cannot listen on 127.0.0.1")?;
    print(&format!("{}\n", server.address()))?;
    say("the page is at this address until Ctrl-C");
    Ok(server.run(&page, &details)?)
}

/// The analyses that answer the questions about the trace in `dir`.
fn analyses(
    dir: &Path,
    questions: &[Question],
    catalogue: &Catalogue<'_>,
) -> anyhow::Result<Vec<SendAnalysis<'static>>> {
    let asked = questions.iter();
    let analyses = asked.map(|question| question.analysis(dir, catalogue));
    let analyses = analyses.collect::<Result<_, _>>();
    analyses.with_context(|| dir.display().to_string())
}
