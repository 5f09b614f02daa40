// SPDX-License-Identifier: GPL-2.0

//! One pass over a trace, in order of time, for all questions.

use super::choice::Part;
use super::engine::{Ended, Engine};
use super::frame;
use super::head::{Extent, Head};
use super::loss::{Account, Losses};
use super::{key, Analysis, Answer, Catalogue, EventKey, SendAnalysis};
use ctf::{Item, Merge};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::iter::once;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;
use store::Trace;
use system::files;

/// Answers to the questions, with the head and the losses of the trace.
pub struct Answers {
    pub(super) head: Head,
    /// Losses of the trace.
    pub losses: Losses,
    /// Time range of the trace.
    pub extent: Extent,
    /// Warnings about the trace.
    pub warnings: Vec<String>,
    answers: Vec<Box<dyn Answer>>,
    /// Contents of the trace's streams.
    pub(super) account: Account,
    /// Number of records of each event that occurred.
    pub(super) counts: Vec<(EventKey, u64)>,
}

/// Passes the items of a trace to `take`, in order of time, until `take` breaks. Calls `progress` with the
/// size of each packet that was read. Returns whether the whole trace was read.
pub fn each<E: From<system::Error>>(
    trace: &Trace,
    progress: impl FnMut(u64) -> Result<(), E>,
    take: impl FnMut(usize, &Item<'_>) -> Result<ControlFlow<()>, E>,
) -> Result<bool, E> {
    each_of(trace.merge()?, progress, take)
}

/// Passes the items of a merge to `take`, as [`each`] does.
pub fn each_of<E: From<system::Error>>(
    mut merge: Merge,
    mut progress: impl FnMut(u64) -> Result<(), E>,
    mut take: impl FnMut(usize, &Item<'_>) -> Result<ControlFlow<()>, E>,
) -> Result<bool, E> {
    while let Some((stream, item)) = merge.next_item()? {
        if let Item::Packet(packet) = &item {
            progress(packet.at.size())?;
        }
        if take(stream, &item)?.is_break() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Maximum number of files that several threads have open at once. They also leave half of the process's files.
const FILES: u64 = 512;

/// The least cost of a thread's analyses. Each thread also reads the trace and keeps the schedule.
const LEAST_COST: u32 = 6;

/// Analyses, each with its number.
type Group<'a> = Vec<(usize, SendAnalysis<'a>)>;

/// Reads the chosen part of a trace. Calls `progress` with the size of each packet that was read.
///
/// If there are several CPUs, and analyses that take long, several threads read the trace, each for some of the
/// analyses. Each thread has an engine and its events, so the answers do not depend on the number of threads.
pub fn read<'a>(
    dir: &Path,
    trace: &'a Trace,
    catalogue: &Catalogue<'_>,
    analyses: Vec<SendAnalysis<'a>>,
    choice: &Part,
    progress: impl Fn(u64),
) -> system::Result<Answers> {
    let count = analyses.len();
    let mut groups = groups(analyses, trace.streams_by_name().count() as u64).into_iter();
    let first = groups.next().unwrap_or_default();
    let ended = thread::scope(|scope| {
        let others =
            groups.map(|group| scope.spawn(|| pass(trace, catalogue, group, choice, |_| ())));
        let others: Vec<_> = others.collect();
        let first = pass(trace, catalogue, first, choice, progress);
        let others = others.into_iter().map(|other| match other.join() {
            Ok(ended) => ended,
            Err(panic) => resume_unwind(panic),
        });
        once(first)
            .chain(others)
            .collect::<system::Result<Vec<_>>>()
    })?;
    let mut answers: Vec<_> = (0..count).map(|_| None).collect();
    let mut read = None;
    for (numbers, ended) in ended {
        let ticks = ended.extent.ticks();
        for (number, analysis) in numbers.into_iter().zip(ended.analyses) {
            answers[number] = Some(analysis.answer(ticks));
        }
        read.get_or_insert((ended.account, ended.extent, ended.counts));
    }
    let (account, extent, counts) = read.unwrap_or_default();
    Ok(Answers {
        head: Head::new(dir, trace, extent, account.all().packets),
        losses: account.total(),
        extent,
        warnings: account.warnings(),
        account,
        counts,
        answers: answers.into_iter().flatten().collect(),
    })
}

/// Distributes analyses to threads, by their cost. Each thread opens all streams.
fn groups(analyses: Vec<SendAnalysis<'_>>, streams: u64) -> Vec<Group<'_>> {
    let cost = analyses.iter().map(|analysis| analysis.cost()).sum::<u32>();
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let most = FILES.min(files::limit() / 2) / streams.max(1);
    let most = most.min(cpus as u64).min((cost / LEAST_COST).into());
    let count = most.max(1);
    let mut groups: Vec<(u32, Group<'_>)> = (0..count).map(|_| Default::default()).collect();
    let mut analyses: Group<'_> = analyses.into_iter().enumerate().collect();
    analyses.sort_by_key(|(_, analysis)| Reverse(analysis.cost()));
    for analysis in analyses {
        if let Some((cost, group)) = groups.iter_mut().min_by_key(|(cost, _)| *cost) {
            *cost += analysis.1.cost();
            group.push(analysis);
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Reads the chosen part of a trace for some analyses. Returns their numbers, and the result of the engine.
fn pass<'a>(
    trace: &Trace,
    catalogue: &Catalogue<'_>,
    analyses: Group<'a>,
    choice: &Part,
    progress: impl Fn(u64),
) -> system::Result<(Vec<usize>, Ended<dyn Analysis + Send + 'a>)> {
    let (numbers, analyses) = analyses.into_iter().unzip();
    let mut engine = Engine::new(catalogue, Account::of(trace), analyses).choose(choice);
    let progress = |bytes| {
        progress(bytes);
        Ok::<_, system::Error>(())
    };
    let merge = trace.merge()?.only(|layout| engine.wants(key(layout)));
    each_of(merge, progress, |stream, item| {
        engine.item(stream, item);
        Ok(ControlFlow::Continue(()))
    })?;
    let end = engine.extent().end();
    Ok((numbers, engine.end(end)))
}

/// The JSON object of a report with questions. `A` has the form of the answers.
#[derive(JsonSchema, Serialize)]
#[serde(bound(serialize = ""))]
pub struct Object<'a, A> {
    #[serde(flatten)]
    head: &'a Head,
    #[serde(flatten)]
    losses: &'a Losses,
    /// Warnings about the trace.
    warnings: &'a [String],
    #[serde(flatten)]
    #[schemars(with = "A")]
    answers: BTreeMap<&'static str, Json>,
    #[serde(skip)]
    form: PhantomData<A>,
}

impl Answers {
    /// Says that the answers are about this range of the trace in `dir`.
    pub fn within(mut self, range: Extent, dir: &Path, trace: &Trace) -> Self {
        self.head = Head::new(dir, trace, range, self.account.all().packets);
        self.extent = range;
        self
    }

    /// Returns the answers as one JSON object.
    pub fn object<A>(&self) -> serde_json::Result<Object<'_, A>> {
        let answers = self.answers.iter();
        Ok(Object {
            head: &self.head,
            losses: &self.losses,
            warnings: &self.warnings,
            answers: answers
                .map(|answer| Ok((answer.name(), answer.json()?)))
                .collect::<serde_json::Result<_>>()?,
            form: PhantomData,
        })
    }

    /// Returns the answers, in the order of the analyses.
    pub fn answers(&self) -> impl Iterator<Item = &dyn Answer> {
        self.answers.iter().map(|answer| &**answer)
    }

    /// Returns the end of the report as text.
    pub fn close(&self) -> Result<String, fmt::Error> {
        let mut out = String::new();
        frame::close(&mut out, &self.losses)?;
        Ok(out)
    }

    /// Returns the report as text, with at most `rows` rows per table.
    pub fn text(&self, rows: usize) -> Result<String, fmt::Error> {
        let mut out = String::new();
        frame::head(&mut out, &self.head)?;
        for answer in &self.answers {
            answer.text(&mut out, rows)?;
        }
        if self.losses.lost > 0 || !self.losses.lost_is_exact {
            frame::lower_bounds(&mut out)?;
        }
        frame::close(&mut out, &self.losses)?;
        Ok(out)
    }
}
