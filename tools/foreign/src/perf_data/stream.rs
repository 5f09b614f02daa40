// SPDX-License-Identifier: GPL-2.0

//! Translates the records of a CPU.
//!
//! An interrupt may write its record before the record of the code that it interrupted, whose time is earlier. The first
//! reading of the file finds how late a record may be. So a record waits until no earlier one can follow.

use super::attribute::Meaning;
use super::index::{long, CpuRecords, Kinds};
use super::records::{self, Reader};
use super::sample::Sample;
use super::tasks::Names;
use crate::ftrace::Events;
use crate::{Chain, Content};
use ctf::{Damage, FoundEvent, PacketAt, Packets};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;
use std::sync::Arc;
use system::{Error, Result};
use uuid::Uuid;

/// Bytes of a packet, about.
const PACKET: usize = 1 << 16;

/// The maximum number of bytes of waiting records.
const WAITING: usize = 1 << 26;

/// The events of a trace.
#[derive(Debug)]
pub struct Trace {
    /// The path of the file.
    pub path: PathBuf,
    /// The meaning of records.
    pub kinds: Kinds,
    /// The translation of each event's samples.
    pub shown: Vec<Shown>,
    /// The translation of tracepoints.
    pub events: Events,
    /// The ids of the events for throttled sampling: its begin and its end.
    pub throttled: [u32; 2],
    /// The names of threads.
    pub names: Names,
    /// Whether events have call stacks.
    pub has_stacks: bool,
}

/// The translation of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Not at all: the event has no samples.
    None,
    /// Its record is that of a tracepoint.
    Tracepoint,
    /// An event with this id. Whether it has an address of data.
    Sample(u32, bool),
}

impl Shown {
    /// The translation of samples of this meaning, which have this id if they are no tracepoint's.
    pub fn of(meaning: &Meaning, id: u32, has_address: bool) -> Self {
        match meaning {
            Meaning::Dummy => Self::None,
            Meaning::Tracepoint(_) => Self::Tracepoint,
            Meaning::Sample(_) => Self::Sample(id, has_address),
        }
    }
}

/// The records of a CPU, with the events of their trace.
#[derive(Clone, Debug)]
pub struct StreamPlan {
    /// The trace.
    pub trace: Arc<Trace>,
    /// The records.
    pub records: CpuRecords,
    /// The CPU.
    pub cpu: u32,
}

/// A record that waits. The earliest is the largest, and of several the first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    time: Reverse<u64>,
    number: Reverse<u64>,
    kind: u32,
    offset: u64,
    /// The event.
    place: usize,
    body: Vec<u8>,
}

/// Reads the records of a CPU.
#[derive(Debug)]
pub struct StreamPackets {
    plan: StreamPlan,
    chain: Chain,
    content: Content,
    /// The open run.
    reader: Option<Reader>,
    /// The index of the next run.
    next: usize,
    waiting: BinaryHeap<Waiting>,
    /// Bytes of the waiting records.
    bytes: usize,
    /// The number of records, and the latest time so far.
    number: u64,
    newest: u64,
    /// Bytes of the records that were read, and those of the last packet's end.
    read: u64,
    packed: u64,
    /// Packets before this offset are left out.
    from: u64,
    contexts: Vec<u8>,
    damage: Option<Damage>,
}

impl StreamPackets {
    /// Opens a stream before its first packet.
    pub fn new(plan: StreamPlan) -> Self {
        Self {
            chain: Chain::new(Uuid::nil(), 0, u64::from(plan.cpu), plan.cpu),
            content: Content::default(),
            reader: None,
            next: 0,
            waiting: BinaryHeap::new(),
            bytes: 0,
            number: 0,
            newest: 0,
            read: 0,
            packed: 0,
            from: 0,
            contexts: Vec::new(),
            damage: None,
            plan,
        }
    }

    fn damage(&self, offset: u64, bytes: u64, what: String) -> Damage {
        Damage {
            path: self.plan.trace.path.clone(),
            offset,
            bytes,
            what,
        }
    }

    /// Reads the next record, which waits then. Returns whether there is one.
    fn read_record(&mut self) -> std::result::Result<bool, Damage> {
        loop {
            let Some((source, range)) = self.plan.records.runs.get(self.next) else {
                return Ok(false);
            };
            let reader = self
                .reader
                .get_or_insert_with(|| Reader::new(source, range.clone()));
            let record = match reader.next(source) {
                Ok(Some(record)) => record,
                Ok(None) => {
                    self.reader = None;
                    self.next += 1;
                    continue;
                }
                Err(error) => {
                    let (start, end) = (range.start, range.end);
                    self.reader = None;
                    self.next += 1;
                    let what = match error {
                        Error::Corrupt { what, .. } => what,
                        error => error.to_string(),
                    };
                    return Err(self.damage(start, end - start, what));
                }
            };
            self.read += record.size;
            let body = reader.body();
            let Some((place, common)) = self.plan.trace.kinds.of(&record, body) else {
                let what = "a sample of an unknown event, or one that is too short".to_owned();
                return Err(self.damage(record.offset, record.size, what));
            };
            let time = common.time.unwrap_or(0);
            self.newest = self.newest.max(time);
            self.number += 1;
            self.bytes += body.len();
            self.waiting.push(Waiting {
                time: Reverse(time),
                number: Reverse(self.number),
                kind: record.kind,
                offset: record.offset,
                place,
                body: body.to_vec(),
            });
            return Ok(true);
        }
    }

    /// The next record, in order of time.
    fn record(&mut self) -> std::result::Result<Option<Waiting>, Damage> {
        loop {
            let is_first = self.waiting.peek().is_some_and(|first| {
                first.time.0.saturating_add(self.plan.records.lateness) <= self.newest
            });
            if is_first || self.bytes > WAITING || !self.read_record()? {
                let first = self.waiting.pop();
                self.bytes -= first.as_ref().map_or(0, |first| first.body.len());
                return Ok(first);
            }
        }
    }

    /// Translates records to a packet. [`None`]: the stream ends.
    fn packet(&mut self) -> Option<PacketAt> {
        let mut begin = None;
        self.content.start(self.chain.end());
        while self.content.bytes.len() < PACKET {
            let record = match self.record() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(damage) => {
                    self.damage = Some(damage);
                    break;
                }
            };
            let time = record.time.0;
            if record.kind == records::LOST && begin.is_some() {
                // The loss is between two packets.
                self.bytes += record.body.len();
                self.waiting.push(record);
                break;
            }
            if begin.is_none() {
                let time = time.max(self.chain.end());
                self.content.start(time);
                begin = Some(time);
            }
            let (before, now) = (self.content.bytes.len(), self.content.now());
            if let Err(what) = self.write(&record, time) {
                self.content.undo(before, now);
                let size = record.body.len() as u64 + 8;
                self.damage = Some(self.damage(record.offset, size, what));
                break;
            }
        }
        let begin = begin?;
        // Offsets only grow, also while the last records wait.
        let from = self.packed;
        self.packed = self.read.max(from + 1);
        let time = begin..self.content.now();
        Some(
            self.chain
                .packet(time, self.content.bytes.len(), from..self.packed),
        )
    }

    /// Translates a record.
    fn write(&mut self, record: &Waiting, time: u64) -> std::result::Result<(), String> {
        let trace = &*self.plan.trace;
        if time < self.content.now() {
            let now = self.content.now();
            return Err(format!("a record at {time}, before the record at {now}"));
        }
        let body = record.body.as_slice();
        match record.kind {
            records::LOST => {
                self.chain
                    .lost_events(long(body, 8).ok_or("a record that is too short")?);
                return Ok(());
            }
            records::THROTTLE | records::UNTHROTTLE => {
                let id = trace.throttled[usize::from(record.kind == records::UNTHROTTLE)];
                let sample = Sample::default();
                contexts(trace, &sample, time, &mut self.contexts);
                self.content.event(id, time);
                self.content.bytes.extend_from_slice(&self.contexts);
                self.content.payload();
                return Ok(());
            }
            _ => {}
        }
        let attribute = &trace.kinds.attributes[record.place];
        let sample = Sample::parse(attribute, body).ok_or("a sample that is too short")?;
        match trace.shown[record.place] {
            Shown::None => {}
            Shown::Tracepoint => {
                contexts(trace, &sample, time, &mut self.contexts);
                let id = sample
                    .raw
                    .first_chunk()
                    .ok_or("a sample without its event")?;
                let id = u16::from_le_bytes(*id);
                trace
                    .events
                    .write(id, time, &self.contexts, sample.raw, &mut self.content)?;
            }
            Shown::Sample(id, has_address) => {
                contexts(trace, &sample, time, &mut self.contexts);
                self.content.event(id, time);
                self.content.bytes.extend_from_slice(&self.contexts);
                self.content.payload();
                self.content.integer(sample.ip, 8);
                self.content.integer(sample.period, 8);
                if has_address {
                    self.content.integer(sample.address, 8);
                }
            }
        }
        Ok(())
    }
}

/// Writes the contexts of a sample: process, thread, its name, and the stacks.
fn contexts(trace: &Trace, sample: &Sample<'_>, time: u64, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&sample.pid.to_le_bytes());
    out.extend_from_slice(&sample.tid.to_le_bytes());
    out.extend_from_slice(&trace.names.at(sample.tid, time));
    if trace.has_stacks {
        sample.stack(true, out);
        sample.stack(false, out);
    }
}

impl Packets for StreamPackets {
    fn next(
        &mut self,
        content: &mut Vec<u8>,
        events: &mut Vec<FoundEvent>,
    ) -> std::result::Result<Option<PacketAt>, Damage> {
        loop {
            if let Some(damage) = self.damage.take() {
                return Err(damage);
            }
            let packet = self.packet();
            self.content.exchange(content, events);
            match packet {
                Some(at) if at.offset >= self.from => return Ok(Some(at)),
                Some(_) => {}
                None if self.damage.is_none() => return Ok(None),
                None => {}
            }
        }
    }

    fn seek(&mut self, offset: u64) -> Result<()> {
        *self = Self::new(self.plan.clone());
        self.from = offset;
        Ok(())
    }
}
