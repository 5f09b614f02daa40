// SPDX-License-Identifier: GPL-2.0

//! One pass over a trace, in order of time, for all questions that are asked of it.

use super::dispatch::Dispatch;
use super::head::{Extent, Head};
use super::losses::{Damages, Losses};
use super::summary::{cut, Content, Earlier};
use super::text;
use super::{Analysis, Answer, Catalogue};
use consumer::State;
use ctf::{Event, Item, Packet};
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use store::Trace;

/// What was found.
pub struct Answers {
    pub(super) head: Head,
    /// Losses among its events.
    pub losses: Losses,
    /// The time of the trace.
    pub extent: Extent,
    /// Warnings about the trace.
    pub warnings: Vec<String>,
    answers: Vec<Box<dyn Answer>>,
    /// The streams that have packets, by their names.
    pub(super) streams: Vec<StreamContent>,
}

/// Contents of a stream.
pub(super) struct StreamContent {
    /// Its first file.
    pub path: PathBuf,
    /// Its class.
    pub stream_id: u32,
    /// The number of its CPU.
    pub cpu: u32,
    /// Its contents.
    pub content: Content,
}

/// Reads the whole trace. `progress` hears of every piece that was read.
pub fn read<'a>(
    dir: &Path,
    trace: &'a Trace,
    catalogue: &Catalogue<'_>,
    analyses: Vec<Box<dyn Analysis + 'a>>,
    progress: impl Fn(u64),
) -> system::Result<Answers> {
    let mut merge = trace.merge()?;
    let mut pass = Pass::new(trace, catalogue, analyses);
    while let Some((stream, item)) = merge.next_item()? {
        match item {
            Item::Packet(packet) => {
                pass.packet(stream, &packet);
                progress(packet.at.size());
            }
            Item::Whole { timestamp } => pass.dispatch.whole(stream, timestamp),
            Item::Event(event) => pass.event(stream, &event),
            Item::Damaged { damage, timestamp } => {
                pass.damages.add(damage.clone());
                pass.dispatch.lose_from(stream, timestamp);
            }
            Item::End { partial } => pass.end(stream, partial),
        }
    }
    Ok(pass.answers(dir))
}

struct Pass<'a> {
    trace: &'a Trace,
    dispatch: Dispatch<dyn Analysis + 'a>,
    /// By their places in the trace.
    streams: Vec<Stream<'a>>,
    extent: Extent,
    warnings: Vec<String>,
    damages: Damages,
}

/// What is known of a stream.
#[derive(Clone, Copy)]
struct Stream<'a> {
    /// Its first file.
    path: &'a Path,
    /// Its class and the number of its CPU; none before its first packet.
    of: Option<(u32, u32)>,
    content: Content,
}

impl<'a> Stream<'a> {
    /// Of the stream in these files.
    fn new(files: &'a [PathBuf]) -> Self {
        Self {
            path: &files[0],
            of: None,
            content: Content::default(),
        }
    }
}

impl<'a> Pass<'a> {
    fn new(
        trace: &'a Trace,
        catalogue: &Catalogue<'_>,
        analyses: Vec<Box<dyn Analysis + 'a>>,
    ) -> Self {
        Self {
            trace,
            dispatch: Dispatch::new(catalogue, analyses),
            streams: trace.streams_by_name().map(Stream::new).collect(),
            extent: Extent::default(),
            warnings: Vec::new(),
            damages: Damages::of(trace),
        }
    }

    fn packet(&mut self, number: usize, packet: &Packet<'_>) {
        let header = packet.at.header;
        self.extent
            .add(header.timestamp_begin, header.timestamp_end);
        let stream = &mut self.streams[number];
        let is_first = self.dispatch.cpu(number).is_none();
        stream.of = Some((header.stream_id, header.cpu_id));
        let earlier = Earlier::of(self.trace.recording.as_ref(), stream.path);
        stream
            .content
            .add_packet(packet, is_first.then_some(earlier));
        self.dispatch.packet(number, packet);
    }

    fn event(&mut self, number: usize, event: &Event<'_>) {
        self.streams[number].content.events += 1;
        self.dispatch.event(number, event);
    }

    fn end(&mut self, number: usize, partial: u64) {
        self.warnings
            .extend(cut(self.streams[number].path, partial));
        // Streams that were cut end at any time.
        let recording = self.trace.recording.as_ref();
        let state = recording.map(|recording| recording.state);
        if partial > 0 || matches!(state, Some(State::Writing | State::Failed)) {
            self.dispatch.cut(number);
        }
    }

    fn answers(mut self, dir: &Path) -> Answers {
        let analyses = self.dispatch.end(self.extent.end()).into_iter();
        let mut all = Content::default();
        self.streams
            .iter()
            .for_each(|stream| all.add(&stream.content));
        let recording = self.trace.recording.as_ref();
        let losses = Losses::new(&all, recording, self.damages);
        self.warnings.extend(losses.warnings());
        Answers {
            head: Head::new(dir, self.trace, self.extent, all.packets),
            losses,
            extent: self.extent,
            warnings: self.warnings,
            streams: self
                .streams
                .iter()
                .filter_map(|stream| {
                    let (stream_id, cpu) = stream.of?;
                    Some(StreamContent {
                        path: stream.path.to_owned(),
                        stream_id,
                        cpu,
                        content: stream.content,
                    })
                })
                .collect(),
            answers: analyses
                .map(|analysis| analysis.answer(self.extent.ticks()))
                .collect(),
        }
    }
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
    /// One JSON object.
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

    /// The answers, in the order of the analyses.
    pub fn answers(&self) -> impl Iterator<Item = &dyn Answer> {
        self.answers.iter().map(|answer| &**answer)
    }

    /// Text: what every report ends with.
    pub fn close(&self) -> Result<String, fmt::Error> {
        let mut out = String::new();
        text::close(&mut out, &self.losses)?;
        Ok(out)
    }

    /// Text, with at most `rows` rows in a table.
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
