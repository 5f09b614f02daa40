// SPDX-License-Identifier: GPL-2.0

//! Merges all streams of a trace in order of time, while their packets arrive: like [`Merge`], from memory.
//!
//! A stream without a packet may still get an older event than the other streams have. So the caller gives a time up
//! to which no event can follow. The [`newest`](Feed::newest) time before all buffers were flushed and read is such a
//! time. A packet may still arrive later, because its writer was interrupted that long. It is returned at once, late.
//!
//! [`Merge`]: super::Merge

use crate::header::PacketAt;
use crate::item::{Item, Next};
use crate::link::Link;
use crate::metadata::Metadata;
use crate::stream::Packet;
use crate::stream_name::StreamName;
use rtrace_abi::packet::PacketHeader;
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};
use std::path::{Path, PathBuf};
use system::{Error, Result};

/// The items of a trace by time, as far as they have arrived.
#[derive(Debug, Default)]
pub struct Feed {
    metadata: Option<Metadata>,
    streams: Vec<Stream>,
    /// The time of the next item, for each stream that has one.
    queue: BinaryHeap<Reverse<(u64, usize)>>,
    newest: u64,
    bytes: usize,
}

/// A stream, and its packets that have arrived.
#[derive(Debug)]
struct Stream {
    /// Its name in errors.
    path: PathBuf,
    /// The last packet that has arrived.
    last: Option<PacketAt>,
    /// The packet that is being read, or was read last.
    current: Option<Held>,
    /// The packets after it.
    waiting: VecDeque<Held>,
    next: Next,
    /// The time of its next item, if the stream is not in the queue.
    idle_since: Option<u64>,
}

/// A packet in memory.
#[derive(Debug)]
struct Held {
    at: PacketAt,
    /// The previous packet.
    before: Option<PacketAt>,
    /// Header and events.
    content: Vec<u8>,
}

impl Feed {
    /// Takes the trace's description, before its packets. A later description must contain the previous one.
    pub fn describe(&mut self, text: &str) -> Result<&Metadata> {
        Ok(self.metadata.insert(Metadata::parse(text)?))
    }

    /// Adds a stream. Returns its number.
    pub fn open(&mut self, name: &StreamName) -> usize {
        self.streams.push(Stream {
            path: name.to_string().into(),
            last: None,
            current: None,
            waiting: VecDeque::new(),
            next: Next::Packet,
            idle_since: Some(0),
        });
        self.streams.len() - 1
    }

    /// The number of streams.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// The name of a stream.
    pub fn name(&self, stream: usize) -> &Path {
        &self.streams[stream].path
    }

    /// The number of the last packet of a stream that has arrived.
    pub fn last(&self, stream: usize) -> Option<u64> {
        let last = self.streams[stream].last;
        last.map(|packet| packet.header.packet_seq_num)
    }

    /// Takes the next packet of a stream: its bytes, with or without the padding.
    pub fn push(&mut self, number: usize, mut packet: Vec<u8>) -> Result<()> {
        let stream = &mut self.streams[number];
        let offset = stream.last.map_or(0, |last| last.end());
        let short = || Error::Corrupt {
            path: stream.path.clone(),
            offset,
            what: format!("a packet is cut off after {} bytes", packet.len()),
        };
        let header = packet.first_chunk::<{ PacketHeader::SIZE }>();
        let metadata = self.metadata.as_ref().ok_or_else(undescribed)?;
        let uuid = Some(metadata.uuid);
        let at = PacketAt::decode(header.ok_or_else(short)?, &stream.path, offset, uuid)?;
        if packet.len() < at.content() as usize {
            return Err(short());
        }
        Link::new(&stream.path, metadata, stream.last, &at)?;
        packet.truncate(at.content() as usize);
        packet.shrink_to_fit();
        self.bytes += packet.len();
        self.newest = self.newest.max(at.header.timestamp_end);
        stream.waiting.push_back(Held {
            at,
            before: stream.last.replace(at),
            content: packet,
        });
        if let Some(time) = stream.idle_since.take() {
            self.queue.push(Reverse((time, number)));
        }
        Ok(())
    }

    /// The latest end of all packets that have arrived, by the clock.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// Bytes of the packets that have arrived and are not read yet.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The next item that is not after `until`, and the number of its stream. [`None`]: no such item has arrived.
    /// There is no [`Item::End`].
    ///
    /// After an error, the packets that had arrived before it give no more items.
    pub fn next_item(&mut self, until: u64) -> Result<Option<(usize, Item<'_>)>> {
        let Some(mut top) = self.queue.peek_mut() else {
            return Ok(None);
        };
        let Reverse((time, number)) = *top;
        if time > until {
            return Ok(None);
        }
        let stream = &mut self.streams[number];
        if matches!(stream.next, Next::Packet) {
            stream.current = stream.waiting.pop_front();
            self.bytes -= stream.current.as_ref().map_or(0, |held| held.content.len());
        }
        let Some(held) = &stream.current else {
            PeekMut::pop(top);
            return Ok(None);
        };
        let metadata = self.metadata.as_ref().ok_or_else(undescribed);
        let packet = metadata.and_then(|metadata| held.packet(&stream.path, metadata));
        match packet.and_then(|packet| stream.next.item(packet, time)) {
            Ok((item, next, time)) => {
                stream.next = next;
                if matches!(next, Next::Packet) && stream.waiting.is_empty() {
                    stream.idle_since = Some(time);
                    PeekMut::pop(top);
                } else {
                    *top = Reverse((time, number));
                }
                Ok(Some((number, item)))
            }
            Err(error) => {
                drop(top);
                self.queue.clear();
                Err(error)
            }
        }
    }
}

impl Held {
    fn packet<'a>(&'a self, path: &'a Path, metadata: &'a Metadata) -> Result<Packet<'a>> {
        let link = Link::new(path, metadata, self.before, &self.at)?;
        let events = &self.content[PacketHeader::SIZE..];
        Packet::new(path, metadata, &self.at, &link, events, false).ok_or_else(undescribed)
    }
}

fn undescribed() -> Error {
    Error::Metadata {
        line: 1,
        what: "packets came before the description".to_owned(),
    }
}
