// SPDX-License-Identifier: GPL-2.0

//! Goes through one stream, packet by packet.

use super::event::{Events, Position};
use super::header::{PacketAt, PacketHeaders};
use super::metadata::{Metadata, StreamClass};
use crate::error::{Error, Result};
use crate::regular_file;
use rtrace_abi::packet::PacketHeader;
use std::fs::File;
use std::path::Path;

/// Reads a stream file.
#[derive(Debug)]
pub struct StreamReader<'a> {
    path: &'a Path,
    metadata: &'a Metadata,
    headers: PacketHeaders<'a, File>,
    /// The packet that was read last.
    last: Option<Read<'a>>,
    /// One that was before the first.
    earlier: Option<PacketAt>,
    content: Vec<u8>,
}

/// What is known of a packet that was read, but its content.
#[derive(Clone, Copy, Debug)]
struct Read<'a> {
    at: PacketAt,
    class: &'a StreamClass,
    packets_lost: u64,
    events_lost: u64,
}

/// A packet in memory.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Its header and place.
    pub at: PacketAt,
    /// Packets that are missing between the one before, or number 0, and this one.
    pub packets_lost: u64,
    /// Events discarded between the packet before, or the trace's begin, and this one's end.
    pub events_lost: u64,
    path: &'a Path,
    class: &'a StreamClass,
    content: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Its events.
    pub fn events(&self) -> Events<'a> {
        self.events_from(Position::begin(&self.at))
    }

    /// Those from a position on that was reached before.
    pub(super) fn events_from(&self, position: Position) -> Events<'a> {
        Events::new(self.path, self.class, &self.at, self.content, position)
    }
}

impl<'a> StreamReader<'a> {
    /// Opens the file `path`, which must be a regular one. It is closed when the reader is dropped.
    pub fn open(path: &'a Path, metadata: &'a Metadata) -> Result<Self> {
        let file = regular_file::open(path).map_err(Error::read(path))?;
        let headers = PacketHeaders::new(path, file, Some(metadata.uuid))?;
        Ok(Self {
            path,
            metadata,
            headers,
            last: None,
            earlier: None,
            content: Vec::new(),
        })
    }

    /// As if the packet `before`, if there is one, were before the first one in the file.
    pub fn after(mut self, before: Option<PacketAt>) -> Self {
        self.earlier = before;
        self
    }

    /// The last packet that was read, or the one that was before.
    pub fn last(&self) -> Option<PacketAt> {
        self.last.map(|read| read.at).or(self.earlier)
    }

    /// The next whole packet.
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>> {
        let Some(at) = self.headers.next_whole()? else {
            return Ok(None);
        };
        let class = self.class(&at)?;
        self.check_order(&at)?;
        self.content.resize(at.content() as usize, 0);
        self.headers.read_exact_at(&mut self.content, at.offset)?;
        let before = self.before();
        let first_expected = before.map_or(0, |before| before.packet_seq_num.saturating_add(1));
        let discarded_before = before.map_or(0, |before| before.events_discarded);
        self.last = Some(Read {
            at,
            class,
            packets_lost: at.header.packet_seq_num.saturating_sub(first_expected),
            events_lost: at.header.events_discarded.saturating_sub(discarded_before),
        });
        Ok(self.packet())
    }

    /// The packet that was read last, again.
    pub(super) fn packet(&self) -> Option<Packet<'_>> {
        self.last.map(|read| Packet {
            at: read.at,
            packets_lost: read.packets_lost,
            events_lost: read.events_lost,
            path: self.path,
            class: read.class,
            content: &self.content[PacketHeader::SIZE..],
        })
    }

    fn before(&self) -> Option<PacketHeader> {
        self.last().map(|at| at.header)
    }

    /// Bytes of a last packet that is not whole, once [`Self::next_packet`] gives none.
    pub fn partial(&self) -> u64 {
        self.headers.partial()
    }

    /// The class of a packet: one that is described, and for all packets of the stream the same, as
    /// their CPU is.
    fn class(&self, at: &PacketAt) -> Result<&'a StreamClass> {
        let (id, cpu) = (at.header.stream_id, at.header.cpu_id);
        let what = match (self.metadata.stream(id), self.before()) {
            (None, _) => format!("a packet of an unknown stream class {id}"),
            (_, Some(before)) if before.stream_id != id => {
                let class = before.stream_id;
                format!("a packet of stream class {id} in a stream of class {class}")
            }
            (_, Some(before)) if before.cpu_id != cpu => {
                let own = before.cpu_id;
                format!("a packet of CPU {cpu} in the stream of CPU {own}")
            }
            (Some(class), _) => return Ok(class),
        };
        Err(self.corrupt(at, what))
    }

    fn corrupt(&self, at: &PacketAt, what: String) -> Error {
        Error::Corrupt {
            path: self.path.to_owned(),
            offset: at.offset,
            what,
        }
    }

    /// Within a stream, packets do not overlap and nothing counts backwards.
    fn check_order(&self, at: &PacketAt) -> Result<()> {
        let Some(before) = self.before() else {
            return Ok(());
        };
        let now = at.header;
        let pairs = [
            ("timestamp_begin", now.timestamp_begin, before.timestamp_end),
            (
                "packet_seq_num",
                now.packet_seq_num,
                before.packet_seq_num.saturating_add(1),
            ),
            (
                "events_discarded",
                now.events_discarded,
                before.events_discarded,
            ),
        ];
        for (name, value, least) in pairs {
            if value < least {
                let what = format!(
                    "{name} is {value}, after the packet before it must be at least {least}"
                );
                return Err(self.corrupt(at, what));
            }
        }
        Ok(())
    }
}
