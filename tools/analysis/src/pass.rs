// SPDX-License-Identifier: GPL-2.0

//! One pass over a trace, in order of time, for all questions.

use super::choice::Choice;
use super::engine::{Ended, Engine};
use super::head::{Extent, Head};
use super::loss::{Account, Losses};
use super::text;
use super::{key, Analysis, Answer, Catalogue, EventKey};
use ctf::{Item, Merge};
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use store::Trace;

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

/// Reads the chosen part of a trace. Calls `progress` with the size of each packet that was read.
pub fn read<'a>(
    dir: &Path,
    trace: &'a Trace,
    catalogue: &Catalogue<'_>,
    analyses: Vec<Box<dyn Analysis + 'a>>,
    choice: &Choice,
    progress: impl Fn(u64),
) -> system::Result<Answers> {
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
    let Ended {
        analyses,
        account,
        extent,
        counts,
    } = engine.end(end);
    let analyses = analyses.into_iter();
    Ok(Answers {
        head: Head::new(dir, trace, extent, account.all().packets),
        losses: account.total(),
        extent,
        warnings: account.warnings(),
        account,
        counts,
        answers: analyses
            .map(|analysis| analysis.answer(extent.ticks()))
            .collect(),
    })
}

/// The JSON object of a report with questions.
#[derive(Serialize)]
struct Object<'a> {
    #[serde(flatten)]
    head: &'a Head,
    #[serde(flatten)]
    losses: &'a Losses,
    warnings: &'a [String],
    #[serde(flatten)]
    answers: BTreeMap<&'static str, Json>,
}

impl Answers {
    /// Returns the answers as one JSON object.
    pub fn object(&self) -> serde_json::Result<impl Serialize + '_> {
        let answers = self.answers.iter();
        Ok(Object {
            head: &self.head,
            losses: &self.losses,
            warnings: &self.warnings,
            answers: answers
                .map(|answer| Ok((answer.name(), answer.json()?)))
                .collect::<serde_json::Result<_>>()?,
        })
    }

    /// Returns the answers, in the order of the analyses.
    pub fn answers(&self) -> impl Iterator<Item = &dyn Answer> {
        self.answers.iter().map(|answer| &**answer)
    }

    /// Returns the end of the report as text.
    pub fn close(&self) -> Result<String, fmt::Error> {
        let mut out = String::new();
        text::close(&mut out, &self.losses)?;
        Ok(out)
    }

    /// Returns the report as text, with at most `rows` rows per table.
    pub fn text(&self, rows: usize) -> Result<String, fmt::Error> {
        let mut out = String::new();
        text::head(&mut out, &self.head)?;
        for answer in &self.answers {
            answer.text(&mut out, rows)?;
        }
        if self.losses.lost > 0 || !self.losses.lost_is_exact {
            text::lower_bounds(&mut out)?;
        }
        text::close(&mut out, &self.losses)?;
        Ok(out)
    }
}
