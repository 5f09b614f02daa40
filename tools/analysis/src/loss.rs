// SPDX-License-Identifier: GPL-2.0

//! Events that are missing in a trace: at each place, and in all.
//!
//! - [`Loss`]: events of one CPU, missing from one time to another.
//! - [`Account`]: the contents of each stream and its losses, counted while the trace is read.
//! - [`Losses`]: what the account says of the whole trace; every report ends with it.

use super::initial::InitialThreads;
use super::schedule::is_of_cgroups;
use consumer::State;
use ctf::{name_of, Damage, Item, Packet, StreamName};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;
use store::{Recording, Trace};
use terminal::duration;

/// Maximum number of damaged places that are listed one by one.
const LISTED: usize = 100;

/// Maximum number of marks about clocks that are listed one by one.
const CLOCKS: usize = 8;

/// Events of a CPU that may be missing from one time to another, in clock ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The CPU's number.
    pub cpu: u32,
    /// The begin: 0 if nothing of the CPU was read before.
    pub from: u64,
    /// The end.
    pub to: u64,
    /// Events that were discarded one by one.
    pub events: u64,
    /// Packets missing between others.
    pub packets: u64,
    /// Packets missing before the stream's first one.
    pub packets_before: u64,
    /// The damaged bytes, if the place is damaged.
    pub damage: Option<Damage>,
}

impl Loss {
    /// Whether something is known to be missing.
    pub fn any(&self) -> bool {
        let packets = self.packets > 0 || self.packets_before > 0;
        self.events > 0 || packets || self.damage.is_some()
    }
}

impl Display for Loss {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.damage.is_some() {
            return f.write_str("DAMAGED: events are missing");
        }
        let (cpu, packets) = (self.cpu, self.packets + self.packets_before);
        match (self.events, packets) {
            (events, 0) => write!(f, "LOST {events} events on CPU {cpu}"),
            (0, packets) => write!(f, "LOST {packets} packets on CPU {cpu}"),
            (events, packets) => {
                write!(f, "LOST {events} events and {packets} packets on CPU {cpu}")
            }
        }
    }
}

/// Contents of streams.
#[derive(Clone, Copy, Debug, Default, JsonSchema, Serialize)]
pub struct Content {
    /// Events recorded.
    pub events: u64,
    /// Events lost: as for the whole trace.
    pub lost: u64,
    /// Complete packets.
    pub packets: u64,
    /// Packets missing between others.
    pub packets_lost: u64,
    /// Packets missing before the first.
    pub packets_before: u64,
    /// Packets missing where bytes are damaged.
    pub packets_damaged: u64,
    /// Bytes of the complete packets.
    pub bytes: u64,
}

impl Content {
    /// Adds the contents of other streams.
    pub fn add(&mut self, other: &Self) {
        self.events = self.events.saturating_add(other.events);
        self.lost = self.lost.saturating_add(other.lost);
        self.packets = self.packets.saturating_add(other.packets);
        self.packets_lost = self.packets_lost.saturating_add(other.packets_lost);
        self.packets_before = self.packets_before.saturating_add(other.packets_before);
        self.packets_damaged = self.packets_damaged.saturating_add(other.packets_damaged);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// A stream of the account.
#[derive(Debug, Default)]
pub struct StreamAccount {
    /// Its first file; none if the stream is read from memory.
    pub path: Option<PathBuf>,
    /// Its class and its CPU; none before its first packet.
    pub place: Option<(u32, u32)>,
    /// Its contents.
    pub content: Content,
}

/// The warning about a trace of some cgroups.
const OF_CGROUPS: &str = "the trace is limited to cgroups (--cgroup): the times of other threads, the idle time of CPUs, and what other threads do for those of the cgroups are not in it";

/// The contents and losses of a trace, counted while it is read.
#[derive(Debug, Default)]
pub struct Account {
    /// The threads that run when the trace begins.
    pub(crate) initial: InitialThreads,
    recording: Option<Recording>,
    /// Streams by number.
    streams: Vec<StreamAccount>,
    damages: Damages,
    /// Warnings about parts that the trace does not have: other tasks, and the ends of streams.
    cuts: Vec<String>,
    clocks: ClockMarks,
}

/// The tracer's marks that a clock has leapt or is not reliable.
#[derive(Debug, Default)]
struct ClockMarks {
    /// The first of them, each with its time since the begin of the trace.
    first: Vec<String>,
    /// Number of all of them.
    count: usize,
}

impl Account {
    /// Creates the account of a trace in files.
    pub fn of(trace: &Trace) -> Self {
        let stream = |files: &[PathBuf]| StreamAccount {
            path: files.first().cloned(),
            ..StreamAccount::default()
        };
        Self {
            initial: InitialThreads::of(trace),
            recording: trace.recording.clone(),
            streams: trace.streams_by_name().map(stream).collect(),
            damages: Damages::of(trace),
            cuts: trace
                .notes
                .iter()
                .cloned()
                .chain(is_of_cgroups(&trace.metadata).then(|| OF_CGROUPS.to_owned()))
                .collect(),
            clocks: ClockMarks::default(),
        }
    }

    /// Notes a marker, `after_ns` nanoseconds after the begin of the trace, if it is about a clock.
    pub(crate) fn marker(&mut self, text: &str, after_ns: u64) {
        if text.starts_with("clock: ") {
            let ClockMarks { first, count } = &mut self.clocks;
            *count += 1;
            if first.len() < CLOCKS {
                first.push(format!("{text} ({} after the begin)", duration(after_ns)));
            }
        }
    }

    /// Counts an event of the stream `number`.
    pub fn event(&mut self, number: usize) {
        if let Some(stream) = self.streams.get_mut(number) {
            stream.content.events += 1;
        }
    }

    /// Counts another item of the stream `number`. Returns the events, packets, and packets before the first one
    /// that are missing before the end of a packet.
    pub fn item(&mut self, number: usize, item: &Item<'_>) -> [u64; 3] {
        if self.streams.len() <= number {
            self.streams.resize_with(number + 1, Default::default);
        }
        let stream = &mut self.streams[number];
        match item {
            Item::Packet(packet) => return stream.packet(self.recording.as_ref(), packet),
            Item::Damaged { damage, .. } => self.damages.add((*damage).clone()),
            Item::Whole { .. } | Item::Event(_) => {}
            Item::End { partial, skipped } => {
                stream.content.events += skipped.iter().map(|(_, count)| count).sum::<u64>();
                let path = stream.path.as_ref().filter(|_| *partial > 0);
                self.cuts.extend(path.map(|path| {
                    format!(
                        "{}: the last packet is incomplete; its {partial} bytes are left out",
                        path.display()
                    )
                }));
            }
        }
        [0; 3]
    }

    /// Returns whether the trace continued after a stream that ends with `partial` bytes of an incomplete
    /// packet.
    pub fn is_cut(&self, partial: u64) -> bool {
        let state = self.recording.as_ref().map(|recording| recording.state);
        partial > 0 || matches!(state, Some(State::Writing | State::Failed))
    }

    /// Returns the CPU of a stream, if it is known.
    pub fn cpu(&self, number: usize) -> Option<u32> {
        let stream = self.streams.get(number)?;
        let by_name = || Some(name_of(stream.path.as_deref()?)?.cpu);
        stream.place.map(|(_, cpu)| cpu).or_else(by_name)
    }

    /// The streams, by number.
    pub fn streams(&self) -> &[StreamAccount] {
        &self.streams
    }

    /// Contents of all streams.
    pub fn all(&self) -> Content {
        let mut all = Content::default();
        let contents = self.streams.iter().map(|stream| &stream.content);
        contents.for_each(|content| all.add(content));
        all
    }

    /// Whether anything is missing.
    pub fn any(&self) -> bool {
        let all = self.all();
        all.lost > 0 || all.packets_lost > 0 || all.packets_before > 0 || !self.damages.is_empty()
    }

    /// Losses of the whole trace.
    pub fn total(&self) -> Losses {
        Losses::new(&self.all(), self.recording.as_ref(), self.damages.clone())
    }

    /// Warnings about parts that the trace does not have: other tasks, and the ends of streams.
    pub fn cuts(&self) -> &[String] {
        &self.cuts
    }

    /// All warnings about the trace.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.cuts.clone();
        warnings.extend(self.total().warnings());
        let ClockMarks { first, count } = &self.clocks;
        warnings.extend_from_slice(first);
        if *count > first.len() {
            warnings.push(format!("clock: {} more such marks", count - first.len()));
        }
        warnings
    }
}

impl StreamAccount {
    /// Counts a packet, whose events are not counted yet.
    fn packet(&mut self, recording: Option<&Recording>, packet: &Packet<'_>) -> [u64; 3] {
        let header = packet.at.header;
        let is_first = self.place.is_none();
        self.place = Some((header.stream_id, header.cpu_id));
        let content = &mut self.content;
        content.packets += 1;
        content.bytes += packet.at.size();
        let (mut lost, missing) = (packet.events_lost, packet.packets_lost);
        if is_first {
            // The packet counts the events lost since the stream began. Some of these losses may lie in
            // absent chunks.
            let name = self.path.as_deref().and_then(name_of);
            let is_this = |stream: &StreamName| name.as_ref() == Some(stream);
            lost = lost
                .saturating_sub(recording.map_or(0, |recording| recording.lost_before(is_this)));
        }
        content.lost += lost;
        if packet.after_damage {
            content.packets_damaged += missing;
            return [lost, missing, 0];
        }
        if !is_first {
            content.packets_lost += missing;
            return [lost, missing, 0];
        }
        // A trace may begin with any packet, as a snapshot does. Another chunk may have the packets before it.
        let is_from_start = recording.is_none_or(Recording::is_from_start);
        let before = if is_from_start { missing } else { 0 };
        content.packets_before = before;
        [lost, 0, before]
    }
}

/// Recorded and lost events of a trace.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Losses {
    /// Number of events in the trace.
    pub recorded: u64,
    /// Number of lost events: from the kernel's counters if the trace has them, otherwise as reported in
    /// the packets.
    pub lost: u64,
    /// Whether `lost` is complete. Otherwise events of `packets_lost` and `packets_before`, at the damaged
    /// places, and the `missing` events are lost, too.
    pub lost_is_exact: bool,
    /// Outcome of the recording; `None` if an old version or another tool wrote the trace.
    pub recording: Option<Recording>,
    /// Packets missing between others: overwritten before they were read.
    pub packets_lost: u64,
    /// Packets missing before the first: overwritten by a flight recorder, or read earlier.
    pub packets_before: u64,
    /// Events that were read from the kernel and are not in the files.
    pub missing: u64,
    /// Places of the files that cannot be read.
    #[serde(flatten)]
    pub damages: Damages,
}

/// The damaged places of a trace.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct Damages {
    /// The first of them.
    #[serde(rename = "damaged")]
    first: Vec<Damage>,
    /// Number of all of them.
    #[serde(rename = "damaged_places")]
    places: u64,
    /// Bytes of all of them.
    #[serde(rename = "damaged_bytes")]
    bytes: u64,
}

impl Damages {
    /// Damages of a trace that are known before its streams are read.
    pub fn of(trace: &Trace) -> Self {
        let mut damages = Self::default();
        let known = trace.damages.iter().cloned();
        known.for_each(|damage| damages.add(damage));
        damages
    }

    /// Adds a place.
    pub fn add(&mut self, damage: Damage) {
        self.places += 1;
        self.bytes = self.bytes.saturating_add(damage.bytes);
        if self.first.len() < LISTED {
            self.first.push(damage);
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.places == 0
    }
}

impl Display for Damages {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { places, bytes, .. } = self;
        let s = if *places == 1 { "" } else { "s" };
        write!(f, "{places} damaged place{s} ({bytes} bytes)")
    }
}

/// Parts of a trace cannot be shown.
#[derive(Debug, thiserror::Error)]
#[error("the trace is damaged: {0}; the rest is shown")]
pub struct Damaged(String);

impl Losses {
    /// Creates the losses of a trace from its contents, its recording and its damages.
    pub fn new(all: &Content, recording: Option<&Recording>, damages: Damages) -> Self {
        let gaps = all.packets_lost.saturating_add(all.packets_before);
        let totals = recording.and_then(|recording| recording.totals(all.events));
        let missing = missing(recording, all.events);
        Self {
            recorded: all.events,
            lost: totals.map_or(all.lost, |totals| totals.lost),
            lost_is_exact: (totals.is_some() || gaps == 0) && damages.is_empty() && missing == 0,
            recording: recording.cloned(),
            packets_lost: all.packets_lost,
            packets_before: all.packets_before,
            missing,
            damages,
        }
    }

    /// Warnings about the trace.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<_> = self.damages.first.iter().map(Damage::to_string).collect();
        if self.damages.places > warnings.len() as u64 {
            let more = self.damages.places - warnings.len() as u64;
            warnings.push(format!("{more} more places are damaged"));
        }
        if self.missing > 0 {
            let damaged = match self.damages.is_empty() {
                true => "",
                false => "they are damaged, or ",
            };
            warnings.push(format!(
                "{} events were read from the kernel and are not in the trace: {damaged}another reader took them (a snapshot?), or files are missing",
                self.missing
            ));
        }
        warnings
    }

    /// Returns an error if parts of the trace are damaged or missing.
    pub fn verdict(&self) -> Result<(), Damaged> {
        let mut parts = Vec::new();
        if !self.damages.is_empty() {
            parts.push(self.damages.to_string());
        }
        if self.missing > 0 {
            parts.push(format!("{} events are missing", self.missing));
        }
        match parts.as_slice() {
            [] => Ok(()),
            parts => Err(Damaged(parts.join(", "))),
        }
    }
}

/// Returns how many events of a finished trace were read from the kernel and are absent, if `recorded` are
/// present.
fn missing(recording: Option<&Recording>, recorded: u64) -> u64 {
    // The number of events in the chunks before a later chunk is not known.
    let is_whole = |r: &&Recording| r.state == State::Over && r.is_from_start();
    let Some(recording) = recording.filter(is_whole) else {
        return 0;
    };
    let total = recording.stats.as_ref().map(|stats| stats.all.total);
    total.map_or(0, |total| {
        let kept = total.recorded.saturating_sub(total.overwritten);
        kept.saturating_sub(recording.unwritten)
            .saturating_sub(recorded)
    })
}
