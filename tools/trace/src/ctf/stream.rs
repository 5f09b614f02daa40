// SPDX-License-Identifier: GPL-2.0

//! Goes through one stream, packet by packet.

use super::event::{Events, Position};
use super::header::{PacketAt, PacketHeaders};
use super::link::Link;
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
    last: Option<(PacketAt, Link<'a>)>,
    /// One that was before the first.
    earlier: Option<PacketAt>,
    content: Vec<u8>,
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
    /// The packet `at` its place in the stream `path`, with its header and events.
    pub(super) fn new(path: &'a Path, at: PacketAt, link: Link<'a>, content: &'a [u8]) -> Self {
        Self {
            at,
            packets_lost: link.packets_lost,
            events_lost: link.events_lost,
            path,
            class: link.class,
            content: &content[PacketHeader::SIZE..],
        }
    }

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
        self.last.map(|(at, _)| at).or(self.earlier)
    }

    /// The next whole packet.
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>> {
        let Some(at) = self.headers.next_whole()? else {
            return Ok(None);
        };
        let link = Link::new(self.path, self.metadata, self.last(), &at)?;
        self.content.resize(at.content() as usize, 0);
        self.headers.read_exact_at(&mut self.content, at.offset)?;
        self.last = Some((at, link));
        Ok(self.packet())
    }

    /// The packet that was read last, again.
    pub(super) fn packet(&self) -> Option<Packet<'_>> {
        let (at, link) = self.last?;
        Some(Packet::new(self.path, at, link, &self.content))
    }

    /// Bytes of a last packet that is not whole, once [`Self::next_packet`] gives none.
    pub fn partial(&self) -> u64 {
        self.headers.partial()
    }
}
