// SPDX-License-Identifier: GPL-2.0

//! The whole events at the beginning of a packet that was not finished.

use crate::event::{Events, Position};
use crate::header::PacketAt;
use crate::metadata::Metadata;
use rtrace_abi::packet::PacketHeader;
use std::path::Path;

/// Whole events, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// How many.
    pub events: u64,
    /// Bytes of the packet up to their end, header included.
    pub content: u64,
    /// The clock at the last one; at the packet's begin if there is none.
    pub last: u64,
}

impl Prefix {
    /// That of `content`, which begins with the header of `at`. Nothing is believed of the sizes in this,
    /// nor of the time that it ends at. [`None`]: the metadata do not have its stream class.
    pub fn of(metadata: &Metadata, at: &PacketAt, content: &[u8]) -> Option<Self> {
        let mut at = *at;
        at.header.timestamp_end = u64::MAX;
        let class = metadata.stream(at.header.stream_id)?;
        let bytes = content.get(PacketHeader::SIZE..)?;
        let begin = Position::begin(&at);
        let mut events = Events::new(Path::new(""), class, &at, bytes, begin);
        let mut prefix = Self {
            events: 0,
            content: PacketHeader::SIZE as u64,
            last: at.header.timestamp_begin,
        };
        while let Some(Ok(event)) = events.next() {
            prefix = Self {
                events: prefix.events + 1,
                content: (PacketHeader::SIZE + events.position().at()) as u64,
                last: event.timestamp,
            };
        }
        Some(prefix)
    }
}
