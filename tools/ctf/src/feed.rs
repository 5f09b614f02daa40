// SPDX-License-Identifier: GPL-2.0

//! All streams of a trace as one, in order of time, while their packets come: as [`Merge`], from memory.
//!
//! A stream of which nothing has come may still bring something older than what the others have. So who
//! reads says up to which time nothing more can come: the [`newest`](Feed::newest) before all buffers
//! were flushed and read is such a time. A packet that comes later than that all the same (its writer was
//! interrupted for so long) is handed out at once, late.
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

/// The items of a trace by time, as far as they have come.
#[derive(Debug, Default)]
pub struct Feed {
    metadata: Option<Metadata>,
    streams: Vec<Stream>,
    /// When each stream that has something has its next item.
    queue: BinaryHeap<Reverse<(u64, usize)>>,
    newest: u64,
    bytes: usize,
}

/// A stream, and what has come of it.
#[derive(Debug)]
struct Stream {
    /// What errors call it.
    path: PathBuf,
    /// The last packet that has come.
    last: Option<PacketAt>,
    /// The one that is being read, or was read last.
    current: Option<Held>,
    /// Those that come behind it.
    waiting: VecDeque<Held>,
    next: Next,
    /// When that is, if the stream is not in the queue.
    idle_since: Option<u64>,
}

/// A packet in memory.
#[derive(Debug)]
struct Held {
    at: PacketAt,
    /// The one before it.
    before: Option<PacketAt>,
    /// Header and events.
    content: Vec<u8>,
}

impl Feed {
    /// Takes the trace's description, before its packets; and a newer one, which has all that the one
    /// before has.
    pub fn describe(&mut self, text: &str) -> Result<&Metadata> {
        Ok(self.metadata.insert(Metadata::parse(text)?))
    }

    /// Adds a stream; the number by which it is known from now on.
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

    /// How many streams there are.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// What a stream is called.
    pub fn name(&self, stream: usize) -> &Path {
        &self.streams[stream].path
    }

    /// The number of the last packet of a stream that has come.
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

    /// The end of the latest of all packets that have come, by the clock.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// Bytes of the packets that have come and are not read yet.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The next item that is not after `until`, and the number of its stream; none if no such has
    /// come. There is no [`Item::End`].
    ///
    /// After an error nothing of what has come so far comes any more.
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
        Ok(Packet::new(path, self.at, link, events, false))
    }
}

fn undescribed() -> Error {
    Error::Metadata {
        line: 1,
        what: "packets came before the description".to_owned(),
    }
}
