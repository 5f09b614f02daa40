// SPDX-License-Identifier: GPL-2.0

//! One pass over a trace, in order of time, for all questions that are asked of it.

use super::analysis::{Analysis, Answer, Catalogue, EventKey, Moment};
use super::head::{Extent, Head};
use super::interrupts::Interrupts;
use super::losses::Losses;
use super::schedule::{Schedule, Span};
use super::summary::{cut, elsewhere, Content, Earlier};
use super::text;
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::{self, Write};
use std::path::{Path, PathBuf};
use trace::ctf::{Event, Item, Merge, Packet, Trace};
use trace::recording::State;

/// Who wants an event.
#[derive(Clone, Copy)]
enum Receiver {
    Schedule,
    Interrupts,
    /// The analysis at this place.
    Analysis(usize),
}

/// What was found.
pub struct Answers {
    head: Head,
    losses: Losses,
    /// What is odd about the trace.
    pub warnings: Vec<String>,
    answers: Vec<Box<dyn Answer>>,
}

/// Reads the whole trace. `progress` hears of every piece that was read.
pub fn read(
    dir: &Path,
    trace: &Trace,
    catalogue: &Catalogue<'_>,
    analyses: Vec<Box<dyn Analysis>>,
    progress: impl Fn(u64),
) -> trace::Result<Answers> {
    let mut merge = Merge::new(trace)?;
    let mut pass = Pass::new(trace, catalogue, analyses);
    while let Some((stream, item)) = merge.next_item()? {
        match item {
            Item::Packet(packet) => {
                pass.packet(stream, &packet);
                progress(packet.at.size());
            }
            Item::Whole { timestamp } => pass.whole(stream, timestamp),
            Item::Event(event) => pass.event(stream, &event),
            Item::End { partial } => pass.end(stream, partial),
        }
    }
    Ok(pass.answers(dir))
}

struct Pass<'a> {
    trace: &'a Trace,
    schedule: Schedule,
    /// What the schedule says has ended.
    spans: Vec<Span>,
    interrupts: Interrupts,
    analyses: Vec<Box<dyn Analysis>>,
    /// Who wants an event, and the number by which each knows it.
    routes: HashMap<EventKey, Vec<(Receiver, usize)>>,
    /// The stream classes of these events.
    classes: HashSet<u32>,
    /// By their places in the trace.
    streams: Vec<Stream<'a>>,
    extent: Extent,
    warnings: Vec<String>,
}

/// What is known of a stream.
#[derive(Clone, Copy)]
struct Stream<'a> {
    /// Its first file.
    path: &'a Path,
    /// The place of its CPU in the schedule; none before its first packet.
    cpu: Option<usize>,
    /// Whether it can have events that are wanted: else its losses do not matter.
    is_wanted: bool,
    content: Content,
    /// Where its last packet ended.
    end: u64,
}

impl<'a> Stream<'a> {
    /// Of the stream in these files.
    fn new(files: &'a [PathBuf]) -> Self {
        Self {
            path: &files[0],
            cpu: None,
            is_wanted: false,
            content: Content::default(),
            end: 0,
        }
    }
}

impl<'a> Pass<'a> {
    fn new(trace: &'a Trace, catalogue: &Catalogue<'_>, analyses: Vec<Box<dyn Analysis>>) -> Self {
        let schedule = Schedule::new(catalogue);
        let interrupts = Interrupts::new(catalogue);
        let mut routes: HashMap<EventKey, Vec<(Receiver, usize)>> = HashMap::new();
        let mut route = |receiver, events: Vec<EventKey>| {
            for (which, key) in events.into_iter().enumerate() {
                routes.entry(key).or_default().push((receiver, which));
            }
        };
        route(Receiver::Schedule, schedule.events());
        if analyses.iter().any(|analysis| analysis.wants_interrupts()) {
            route(Receiver::Interrupts, interrupts.events());
        }
        for (place, analysis) in analyses.iter().enumerate() {
            route(Receiver::Analysis(place), analysis.events());
        }
        Self {
            trace,
            schedule,
            spans: Vec::new(),
            interrupts,
            analyses,
            classes: routes.keys().map(|(class, _)| *class).collect(),
            routes,
            streams: trace.streams_by_name().map(Stream::new).collect(),
            extent: Extent::default(),
            warnings: Vec::new(),
        }
    }

    fn packet(&mut self, number: usize, packet: &Packet<'_>) {
        let header = packet.at.header;
        self.extent
            .add(header.timestamp_begin, header.timestamp_end);
        let stream = &mut self.streams[number];
        let is_first = stream.cpu.is_none();
        let earlier = Earlier::of(self.trace.recording.as_ref(), stream.path);
        stream
            .content
            .add_packet(packet, is_first.then_some(earlier));
        let cpu = *stream
            .cpu
            .get_or_insert_with(|| self.schedule.place(header.cpu_id));
        let is_wanted = self.classes.contains(&{ header.stream_id });
        stream.is_wanted = is_wanted;
        let before = std::mem::replace(&mut stream.end, header.timestamp_end);
        if is_first {
            for analysis in &mut self.analyses {
                analysis.cpu(header.cpu_id);
            }
        }
        if !is_wanted {
            return;
        }
        if packet.packets_lost > 0 || packet.events_lost > 0 {
            self.lose(cpu, before);
        } else if is_first {
            self.schedule.begin(cpu, header.timestamp_begin);
        }
    }

    /// Events are missing on a CPU from this time on.
    fn lose(&mut self, cpu: usize, time: u64) {
        self.interrupts.lose(cpu);
        self.schedule.lose(cpu, time, &mut self.spans);
        hand_out(&mut self.spans, &mut self.analyses, &self.schedule);
        for analysis in &mut self.analyses {
            analysis.lost(&self.schedule);
        }
    }

    fn whole(&mut self, number: usize, time: u64) {
        let stream = &self.streams[number];
        if let Some(cpu) = stream.cpu.filter(|_| stream.is_wanted) {
            self.schedule.regain(cpu, time);
        }
    }

    fn event(&mut self, number: usize, event: &Event<'_>) {
        let stream = &mut self.streams[number];
        stream.content.events += 1;
        let key = (event.layout.stream_id, event.layout.id);
        let (Some(routes), Some(cpu)) = (self.routes.get(&key), stream.cpu) else {
            return;
        };
        for &(receiver, which) in routes {
            let now = |schedule| Moment {
                time: event.timestamp,
                cpu,
                schedule,
            };
            match receiver {
                Receiver::Schedule => {
                    let switch = self.schedule.event(which, event, cpu, &mut self.spans);
                    hand_out(&mut self.spans, &mut self.analyses, &self.schedule);
                    if let Some(switch) = switch {
                        for analysis in &mut self.analyses {
                            analysis.switch(&switch, &now(&self.schedule));
                        }
                    }
                }
                Receiver::Interrupts if !self.schedule.is_whole(cpu) => {}
                Receiver::Interrupts => {
                    if let Some(interrupt) = self.interrupts.event(which, event, cpu) {
                        for analysis in &mut self.analyses {
                            analysis.interrupt(&interrupt, &self.schedule);
                        }
                    }
                }
                Receiver::Analysis(place) => {
                    self.analyses[place].event(which, event, &now(&self.schedule));
                }
            }
        }
    }

    fn end(&mut self, number: usize, partial: u64) {
        self.warnings
            .extend(cut(self.streams[number].path, partial));
        let stream = &self.streams[number];
        // Streams that were cut end at any time: what came later on this CPU is missing.
        let state = self
            .trace
            .recording
            .as_ref()
            .map(|recording| recording.state);
        let is_cut = partial > 0 || matches!(state, Some(State::Writing | State::Failed));
        let cpu = stream.cpu.filter(|_| stream.is_wanted && is_cut);
        let time = stream.end;
        if let Some(cpu) = cpu {
            self.lose(cpu, time);
        }
    }

    fn answers(mut self, dir: &Path) -> Answers {
        self.schedule.end(self.extent.end(), &mut self.spans);
        hand_out(&mut self.spans, &mut self.analyses, &self.schedule);
        let mut all = Content::default();
        self.streams
            .iter()
            .for_each(|stream| all.add(&stream.content));
        let recording = self.trace.recording.as_ref();
        self.warnings.extend(elsewhere(recording, all.events));
        Answers {
            head: Head::new(dir, self.trace, self.extent, all.packets),
            losses: Losses::new(&all, recording),
            warnings: self.warnings,
            answers: self
                .analyses
                .into_iter()
                .map(|analysis| analysis.answer(self.extent.ticks()))
                .collect(),
        }
    }
}

/// Gives the analyses what has ended.
fn hand_out(spans: &mut Vec<Span>, analyses: &mut [Box<dyn Analysis>], schedule: &Schedule) {
    for span in spans.drain(..) {
        for analysis in &mut *analyses {
            analysis.span(&span, schedule);
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
    pub fn json(&self) -> serde_json::Result<String> {
        let answers = self.answers.iter();
        let object = Object {
            head: &self.head,
            losses: &self.losses,
            warnings: &self.warnings,
            answers: answers
                .map(|answer| Ok((answer.name(), answer.json()?)))
                .collect::<serde_json::Result<_>>()?,
        };
        serde_json::to_string_pretty(&object)
    }

    /// Text, with at most `rows` rows in a table.
    pub fn text(&self, rows: usize) -> Result<String, fmt::Error> {
        let mut out = String::new();
        text::head(&mut out, &self.head)?;
        for answer in &self.answers {
            answer.text(&mut out, rows)?;
        }
        if self.losses.lost > 0 || !self.losses.lost_is_exact {
            writeln!(
                out,
                "\nThese figures are lower bounds: events are missing, and nothing was timed from before \
                 such a place to after it."
            )?;
        }
        text::close(&mut out, &self.losses)?;
        Ok(out)
    }
}
