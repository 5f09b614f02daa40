// SPDX-License-Identifier: GPL-2.0

//! Passes packets to a [`Merge`] while they arrive.
//!
//! A stream without a packet may still get an older event than the other streams have. So the caller gives a time up
//! to which no event can follow. The [`newest`](Feed::newest) time before all buffers were flushed and read is such a
//! time. A packet may still arrive later, because its writer was interrupted that long. It is returned at once, late.

use crate::header::PacketAt;
use crate::item::Item;
use crate::link::Link;
use crate::merge::Merge;
use crate::metadata::Metadata;
use crate::stream_name::StreamName;
use rtrace_abi::packet::PacketHeader;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use system::{Error, Result};

/// The items of a trace by time, as far as they have arrived.
#[derive(Debug, Default)]
pub struct Feed {
    /// [`None`]: the description has not arrived.
    merge: Option<Merge>,
    streams: Vec<Stream>,
    newest: u64,
}

/// A stream.
#[derive(Debug)]
struct Stream {
    /// Its name in errors.
    path: PathBuf,
    /// The last packet that has arrived.
    last: Option<PacketAt>,
}

impl Feed {
    /// Takes the trace's description, before its packets. A later description must contain the previous one.
    pub fn describe(&mut self, text: &str) -> Result<&Metadata> {
        let metadata = Arc::new(Metadata::parse(text)?);
        let merge = match self.merge.take() {
            Some(mut merge) => {
                merge.describe(metadata);
                merge
            }
            None => {
                let mut merge = Merge::live(metadata);
                for stream in &self.streams {
                    merge.open(stream.path.clone())?;
                }
                merge
            }
        };
        Ok(self.merge.insert(merge).metadata())
    }

    /// Adds a stream. Returns its number.
    pub fn open(&mut self, name: &StreamName) -> Result<usize> {
        let path = PathBuf::from(name.to_string());
        if let Some(merge) = &mut self.merge {
            merge.open(path.clone())?;
        }
        self.streams.push(Stream { path, last: None });
        Ok(self.streams.len() - 1)
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

    /// Takes the next packet of a stream: its bytes, with or without the padding. An event in it that cannot be read
    /// is no error here, but an item.
    pub fn push(&mut self, number: usize, mut packet: Vec<u8>) -> Result<()> {
        let stream = &mut self.streams[number];
        let offset = stream.last.map_or(0, |last| last.end());
        let short = || Error::Corrupt {
            path: stream.path.clone(),
            offset,
            what: format!("a packet is cut off after {} bytes", packet.len()),
        };
        let header = packet.first_chunk::<{ PacketHeader::SIZE }>();
        let merge = self.merge.as_mut().ok_or_else(undescribed)?;
        let metadata = merge.metadata();
        let uuid = Some(metadata.uuid);
        let at = PacketAt::decode(header.ok_or_else(short)?, &stream.path, offset, uuid)?;
        if packet.len() < at.content() as usize {
            return Err(short());
        }
        Link::new(&stream.path, metadata, stream.last, &at)?;
        packet.truncate(at.content() as usize);
        packet.shrink_to_fit();
        self.newest = self.newest.max(at.header.timestamp_end);
        stream.last = Some(at);
        merge.push(number, &at, packet);
        Ok(())
    }

    /// The latest end of all packets that have arrived, by the clock.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// Bytes of the packets that have arrived and are not read yet.
    pub fn bytes(&self) -> usize {
        self.merge.as_ref().map_or(0, Merge::unread)
    }

    /// The next item that is not after `until`, and the number of its stream. [`None`]: no such item has arrived.
    /// There is no [`Item::End`].
    pub fn next_item(&mut self, until: u64) -> Result<Option<(usize, Item<'_>)>> {
        match &mut self.merge {
            Some(merge) => merge.next_until(until),
            None => Ok(None),
        }
    }
}

fn undescribed() -> Error {
    Error::Metadata {
        line: 1,
        what: "packets came before the description".to_owned(),
    }
}
