// SPDX-License-Identifier: GPL-2.0

//! The complete events at the beginning of an unfinished packet.

use crate::event::Events;
use crate::header::PacketAt;
use crate::metadata::Metadata;
use rtrace_abi::packet::PacketHeader;
use std::path::Path;

/// Complete events, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Their number.
    pub events: u64,
    /// The bytes of the packet up to their end, header included.
    pub content: u64,
    /// The clock at the last event; at the packet's begin, if there is none.
    pub last: u64,
}

impl Prefix {
    /// The prefix of `content`, which begins with the header of `at`. Trusts neither the sizes in this header nor its
    /// end time. [`None`]: the metadata does not have its stream class.
    pub fn of(metadata: &Metadata, at: &PacketAt, content: &[u8]) -> Option<Self> {
        let mut at = *at;
        at.header.timestamp_end = u64::MAX;
        let class = metadata.stream(at.header.stream_id)?;
        let bytes = content.get(PacketHeader::SIZE..)?;
        let mut events = Events::new(Path::new(""), class, &at, bytes);
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
