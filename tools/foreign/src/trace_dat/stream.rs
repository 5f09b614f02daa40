// SPDX-License-Identifier: GPL-2.0

//! Translates the sub-buffers of a CPU. Several sub-buffers become one packet; a loss of events begins another one.

use crate::bytes::Source;
use crate::compressed::Compression;
use crate::ftrace::{Events, Missed, PageLayout};
use crate::{Chain, Content};
use ctf::{Damage, FoundEvent, PacketAt, Packets};
use std::sync::Arc;
use system::{Error, Result};
use uuid::Uuid;

/// Bytes of sub-buffers that become one packet.
const GROUP: u64 = 1 << 16;

/// The maximum size of a compressed part when it is decompressed.
const CHUNK: u32 = 1 << 26;

/// The common fields of events: type, flags, preemption count, thread.
pub const COMMON: u32 = 8;

/// The bytes of the contexts of an event: thread, flags, preemption count.
pub const CONTEXTS: usize = 6;

/// The events of a CPU.
#[derive(Clone, Debug)]
pub struct StreamPlan {
    /// The file.
    pub source: Arc<Source>,
    /// The header of a sub-buffer.
    pub layout: PageLayout,
    /// The size of a sub-buffer.
    pub page_size: u32,
    /// Where the sub-buffers are.
    pub groups: Arc<Groups>,
    /// The translation of events.
    pub events: Arc<Events>,
    /// Multiplier and shift that make nanoseconds of times.
    pub tsc: Option<(u32, u32)>,
    /// The id of the trace.
    pub uuid: Uuid,
    /// The stream class.
    pub class: u32,
    /// The CPU.
    pub cpu: u32,
}

/// Sub-buffers that are read at once.
#[derive(Clone, Debug)]
pub enum Groups {
    /// They are in the file one after the other.
    Plain { offset: u64, size: u64 },
    /// They are compressed.
    Compressed(Compression, Vec<Chunk>),
}

/// A compressed part.
#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    /// The offset in the file of its bytes.
    offset: u64,
    /// Their number.
    stored: u32,
    /// The place of the decompressed bytes in the stream.
    begin: u64,
    /// Their number.
    size: u32,
}

impl Groups {
    /// The compressed parts at an offset in the file.
    pub fn compressed(
        compression: Compression,
        source: &Source,
        offset: u64,
        page_size: u32,
    ) -> Result<Self> {
        let mut at = crate::bytes::Cursor::new(source, offset);
        let count = at.u32()?;
        let (mut chunks, mut begin) = (Vec::new(), 0);
        for _ in 0..count {
            let (stored, size) = (at.u32()?, at.u32()?);
            if size > CHUNK || size == 0 || size % page_size != 0 {
                let what = format!(
                    "{size} bytes of sub-buffers of {page_size} bytes in a compressed part"
                );
                return Err(at.wrong(what));
            }
            chunks.push(Chunk {
                offset: at.offset(),
                stored,
                begin,
                size,
            });
            begin += u64::from(size);
            at.skip(stored.into())?;
        }
        Ok(Self::Compressed(compression, chunks))
    }

    /// The bytes of sub-buffers of a whole group.
    fn group_size(page_size: u32) -> u64 {
        (GROUP / u64::from(page_size)).max(1) * u64::from(page_size)
    }

    /// The place in the stream of the group's first byte, and the number of its bytes.
    fn place(&self, group: usize, page_size: u32) -> Option<(u64, u64)> {
        match self {
            Self::Plain { size, .. } => {
                let each = Self::group_size(page_size);
                let begin = each
                    .checked_mul(group as u64)
                    .filter(|begin| begin < size)?;
                Some((begin, each.min(size - begin)))
            }
            Self::Compressed(_, chunks) => {
                let chunk = chunks.get(group)?;
                Some((chunk.begin, chunk.size.into()))
            }
        }
    }

    /// The group with this byte of the stream.
    fn group_at(&self, byte: u64, page_size: u32) -> usize {
        match self {
            Self::Plain { .. } => (byte / Self::group_size(page_size)) as usize,
            Self::Compressed(_, chunks) => {
                chunks.partition_point(|chunk| chunk.begin + u64::from(chunk.size) <= byte)
            }
        }
    }

    /// The offset of a byte of the stream. Compressed bytes have none in the file, so theirs is that in the stream.
    fn offset(&self, byte: u64) -> u64 {
        match self {
            Self::Plain { offset, .. } => offset + byte,
            Self::Compressed(..) => byte,
        }
    }

    /// The byte of the stream at an offset.
    fn byte(&self, at: u64) -> u64 {
        match self {
            Self::Plain { offset, .. } => at.saturating_sub(*offset),
            Self::Compressed(..) => at,
        }
    }

    /// Reads a group. `Err`: an offset in the file, and what is wrong there.
    fn read(
        &self,
        source: &Source,
        group: usize,
        page_size: u32,
        all: &mut Vec<u8>,
    ) -> std::result::Result<(), (u64, String)> {
        let Some((begin, size)) = self.place(group, page_size) else {
            all.clear();
            return Ok(());
        };
        match self {
            Self::Plain { offset, .. } => {
                let read = source.read(all, offset + begin, size);
                read.map_err(|error| (offset + begin, what(error)))
            }
            Self::Compressed(compression, chunks) => {
                let chunk = chunks[group];
                let stored = source.bytes(chunk.offset, chunk.stored.into());
                let stored = stored.map_err(|error| (chunk.offset, what(error)))?;
                let bytes = compression.decompress(&stored, chunk.size as usize);
                *all = bytes.map_err(|why| (chunk.offset, format!("cannot decompress: {why}")))?;
                Ok(())
            }
        }
    }

    /// Passes each sub-buffer to `page`.
    pub fn for_each(&self, source: &Source, page_size: u32, mut page: impl FnMut(&[u8])) {
        let mut bytes = Vec::new();
        for group in 0.. {
            if self.place(group, page_size).is_none() {
                return;
            }
            // Readers of the stream report the damage.
            if self.read(source, group, page_size, &mut bytes).is_err() {
                continue;
            }
            bytes.chunks_exact(page_size as usize).for_each(&mut page);
        }
    }
}

fn what(error: Error) -> String {
    match error {
        Error::Corrupt { what, .. } => what,
        error => error.to_string(),
    }
}

/// Reads the events of a CPU.
#[derive(Debug)]
pub struct StreamPackets {
    plan: StreamPlan,
    chain: Chain,
    content: Content,
    group: usize,
    /// The sub-buffers of the group, and the place in them of the next one.
    bytes: Vec<u8>,
    at: usize,
    /// The damage after the last packet.
    damage: Option<Damage>,
}

impl StreamPackets {
    /// Opens a stream before its first packet.
    pub fn new(plan: StreamPlan) -> Self {
        Self {
            chain: Chain::new(plan.uuid, plan.class, u64::from(plan.cpu), plan.cpu),
            content: Content::default(),
            group: 0,
            bytes: Vec::new(),
            at: 0,
            damage: None,
            plan,
        }
    }

    /// Reads the next group, if the last one is over. Returns whether there is one.
    fn load(&mut self) -> std::result::Result<bool, Damage> {
        if self.at < self.bytes.len() {
            return Ok(true);
        }
        let (plan, group) = (&self.plan, self.group);
        let Some((begin, size)) = plan.groups.place(group, plan.page_size) else {
            return Ok(false);
        };
        self.group += 1;
        self.at = 0;
        let read = plan
            .groups
            .read(&plan.source, group, plan.page_size, &mut self.bytes);
        match read {
            Ok(()) => Ok(true),
            Err((_, what)) => {
                let damage = self.damage_at(plan.groups.offset(begin), size, what);
                self.bytes.clear();
                Err(damage)
            }
        }
    }

    fn damage_at(&self, offset: u64, bytes: u64, what: String) -> Damage {
        let what = match &*self.plan.groups {
            Groups::Plain { .. } => what,
            Groups::Compressed(_, chunks) => {
                let group = self.plan.groups.group_at(offset, self.plan.page_size);
                let at = chunks.get(group).map_or(0, |chunk| chunk.offset);
                format!("{what} (in the compressed part at byte {at} of the file)")
            }
        };
        Damage {
            path: self.plan.source.path.clone(),
            offset,
            bytes,
            what,
        }
    }

    /// Translates the next sub-buffers. [`None`]: the first of them has no event.
    fn packet(&mut self) -> Option<PacketAt> {
        let page_size = self.plan.page_size as usize;
        let group = self.plan.groups.place(self.group - 1, self.plan.page_size);
        let begin_of_group = group.map_or(0, |(begin, _)| begin);
        let first = self.at;
        let byte = begin_of_group + first as u64;
        let mut begin = None;
        self.content.start(self.chain.end());
        while self.at < self.bytes.len() && self.damage.is_none() {
            let end = (self.at + page_size).min(self.bytes.len());
            let bytes = &self.bytes[self.at..end];
            let offset = self.plan.groups.offset(begin_of_group + self.at as u64);
            let opened = match bytes.len() == page_size {
                true => self.plan.layout.page(bytes),
                false => Err(format!(
                    "a sub-buffer of {} bytes, which should have {page_size}",
                    bytes.len()
                )),
            };
            let mut page = match opened {
                Ok(page) => page,
                Err(what) => {
                    self.damage = Some(self.damage_at(offset, bytes.len() as u64, what));
                    self.at = end;
                    break;
                }
            };
            if page.missed != Missed::None && self.at > first {
                break;
            }
            if self.at == first {
                match page.missed {
                    Missed::None => {}
                    Missed::Events(count) => self.chain.lost_events(count),
                    // The loss is shown, without a number.
                    Missed::Unknown => self.chain.lost_packets(1),
                }
            }
            loop {
                let (at, before) = (page.at(), self.content.bytes.len());
                let now = self.content.now();
                let written = match page.next() {
                    Ok(None) => break,
                    Ok(Some((time_, record))) => {
                        let time = time(self.plan.tsc, time_);
                        // The sub-buffer's own time may be much earlier.
                        if begin.is_none() {
                            let time = time.max(self.chain.end());
                            self.content.start(time);
                            begin = Some(time);
                        }
                        event(&self.plan.events, time, record, &mut self.content)
                    }
                    Err(what) => Err(what),
                };
                if let Err(what) = written {
                    self.content.undo(before, now);
                    let left = (page_size - at.min(page_size)) as u64;
                    self.damage = Some(self.damage_at(offset + at as u64, left, what));
                    break;
                }
            }
            self.at = end;
        }
        let begin = begin?;
        let from = self.plan.groups.offset(byte);
        let until = self.plan.groups.offset(begin_of_group + self.at as u64);
        let time = begin..self.content.now();
        Some(
            self.chain
                .packet(time, self.content.bytes.len(), from..until),
        )
    }
}

/// A time in nanoseconds.
#[inline]
fn time(tsc: Option<(u32, u32)>, time: u64) -> u64 {
    match tsc {
        None => time,
        Some((multiplier, shift)) => {
            let product = u128::from(time) * u128::from(multiplier);
            (product >> shift.min(127)) as u64
        }
    }
}

/// Translates an event.
#[inline]
fn event(
    events: &Events,
    time: u64,
    record: &[u8],
    content: &mut Content,
) -> std::result::Result<(), String> {
    let Some(common) = record.first_chunk::<{ COMMON as usize }>() else {
        return Err(format!("an event of {} bytes", record.len()));
    };
    if time < content.now() {
        let now = content.now();
        return Err(format!("an event at {time}, before the event at {now}"));
    }
    let [id, more, flags, preempt, a, b, c, d] = *common;
    let contexts: [u8; CONTEXTS] = [a, b, c, d, flags, preempt];
    events.write(
        u16::from_le_bytes([id, more]),
        time,
        &contexts,
        record,
        content,
    )
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
            if !self.load()? {
                return Ok(None);
            }
            let packet = self.packet();
            self.content.exchange(content, events);
            if packet.is_some() {
                return Ok(packet);
            }
        }
    }

    fn seek(&mut self, offset: u64) -> Result<()> {
        *self = Self::new(self.plan.clone());
        let byte = self.plan.groups.byte(offset);
        self.group = self.plan.groups.group_at(byte, self.plan.page_size);
        let group = self.plan.groups.place(self.group, self.plan.page_size);
        let begin = group.map_or(0, |(begin, _)| begin);
        if self.load().unwrap_or(false) {
            self.at = (byte.saturating_sub(begin) as usize).min(self.bytes.len());
        }
        Ok(())
    }
}
