// SPDX-License-Identifier: GPL-2.0

//! The bytes that a reader reads: of a file, of packets that have arrived, or of packets of a trace in another format.

use crate::bytes::Bytes;
use crate::foreign::Pulled;
use crate::header::PacketAt;
use std::collections::VecDeque;
use std::fs::File;
use std::io;

/// The bytes that a reader reads.
#[derive(Debug)]
pub(super) enum Content {
    File(File),
    Arrived(Arrived),
    Pulled(Pulled),
}

impl Bytes for Content {
    fn length(&self) -> io::Result<u64> {
        match self {
            Self::File(file) => file.length(),
            Self::Arrived(packets) => packets.length(),
            // It has no length: its packets come one after the other.
            Self::Pulled(_) => Ok(0),
        }
    }

    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        match self {
            Self::File(file) => Bytes::read_exact_at(file, bytes, offset),
            Self::Arrived(packets) => packets.read_exact_at(bytes, offset),
            Self::Pulled(packets) => {
                bytes.copy_from_slice(packets.bytes_at(offset, bytes.len())?);
                Ok(())
            }
        }
    }

    fn after_hole(&self, offset: u64) -> Option<u64> {
        match self {
            Self::File(file) => file.after_hole(offset),
            Self::Arrived(packets) => packets.after_hole(offset),
            Self::Pulled(_) => Some(offset),
        }
    }
}

/// Packets of a stream that have arrived, one after the other.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    /// The packet that is being read, or was read last.
    current: Option<Held>,
    /// The packets after it.
    waiting: VecDeque<Held>,
    /// The end of the last packet.
    end: u64,
    /// Bytes of the waiting packets.
    unread: usize,
}

/// A packet without its padding.
#[derive(Debug)]
struct Held {
    offset: u64,
    content: Vec<u8>,
}

impl Arrived {
    /// Adds the packet `at` with this content.
    pub fn push(&mut self, at: &PacketAt, content: Vec<u8>) {
        self.end = at.end();
        self.unread += content.len();
        let offset = at.offset;
        self.waiting.push_back(Held { offset, content });
    }

    /// Makes the packet at `offset` the current one, and frees the memory of those before it.
    pub fn begin(&mut self, offset: u64) {
        while self
            .waiting
            .front()
            .is_some_and(|held| held.offset <= offset)
        {
            self.current = self.waiting.pop_front();
            let length = self.current.as_ref().map_or(0, |held| held.content.len());
            self.unread -= length;
        }
    }

    /// Bytes of the packets after the current one.
    pub fn unread(&self) -> usize {
        self.unread
    }

    /// The packet that contains the byte at `offset`.
    fn find(&self, offset: u64) -> Option<&Held> {
        let place = self.waiting.partition_point(|held| held.offset <= offset);
        match place.checked_sub(1) {
            Some(place) => self.waiting.get(place),
            None => self.current.as_ref().filter(|held| held.offset <= offset),
        }
    }
}

impl Bytes for Arrived {
    fn length(&self) -> io::Result<u64> {
        Ok(self.end)
    }

    /// Reads bytes of one packet. The padding has zeros.
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let held = self.find(offset).ok_or(io::ErrorKind::UnexpectedEof)?;
        let from = usize::try_from(offset - held.offset).unwrap_or(usize::MAX);
        let rest = held.content.get(from..).unwrap_or_default();
        let (full, padding) = bytes.split_at_mut(rest.len().min(bytes.len()));
        full.copy_from_slice(&rest[..full.len()]);
        padding.fill(0);
        Ok(())
    }

    fn after_hole(&self, offset: u64) -> Option<u64> {
        Some(offset)
    }
}
