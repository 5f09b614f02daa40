// SPDX-License-Identifier: GPL-2.0

//! Packets of a trace in another format, which are translated while they are read.

use crate::damage::Damage;
use crate::found::FoundEvent;
use crate::header::PacketAt;
use rtrace_abi::packet::PacketHeader;
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::Path;
use system::Result;

/// A trace in another format, whose streams have packets in rtrace's own form.
pub trait Foreign: Debug + Send + Sync {
    /// Opens the stream with this name, before its first packet.
    fn open(&self, name: &Path) -> Result<Box<dyn Packets>>;

    /// The kernel's functions, as `/proc/kallsyms` has them, if the trace has them.
    fn kallsyms(&self) -> Option<&str> {
        None
    }

    /// Names of threads that the trace has beside its events, by id: those at its end.
    fn names(&self) -> &[(i32, String)] {
        &[]
    }

    /// The mappings of programs, in the form of the text that rtrace writes beside a trace, if the trace has them.
    fn mappings(&self) -> Option<&str> {
        None
    }
}

/// The packets of a stream, one after the other.
pub trait Packets: Debug + Send {
    /// Replaces `content` by the events of the next packet, in the layouts of the trace's description, and `events` by
    /// their places there. Returns the packet. [`None`]: the stream ends. After damage, continues behind it.
    ///
    /// Of the header, `content_size` has the size of header and `content` in bits. `packet_size` has the bits that the
    /// packet has in the foreign file, so that a packet's end is the next packet's offset.
    fn next(
        &mut self,
        content: &mut Vec<u8>,
        events: &mut Vec<FoundEvent>,
    ) -> std::result::Result<Option<PacketAt>, Damage>;

    /// Continues at the packet with this offset.
    fn seek(&mut self, offset: u64) -> Result<()>;
}

/// The packets, with the content of the last one.
#[derive(Debug)]
pub(super) struct Pulled {
    packets: Box<dyn Packets>,
    /// The end of the part to read.
    end: u64,
    /// The offset of the last packet.
    offset: u64,
    content: Vec<u8>,
    events: Vec<FoundEvent>,
}

impl Pulled {
    pub fn new(packets: Box<dyn Packets>) -> Self {
        Self {
            packets,
            end: u64::MAX,
            offset: 0,
            content: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Reads only the packets in a range of offsets, at whose beginning a packet begins.
    pub fn within(&mut self, range: &Range<u64>) -> Result<()> {
        self.end = range.end;
        self.packets.seek(range.start)
    }

    /// The next packet.
    pub fn next(&mut self) -> std::result::Result<Option<PacketAt>, Damage> {
        let next = self.packets.next(&mut self.content, &mut self.events)?;
        let next = next.filter(|at| at.offset < self.end);
        if let Some(at) = &next {
            self.offset = at.offset;
        }
        Ok(next)
    }

    /// The events of the last packet after the first `at` bytes of its content.
    pub fn events_after(&self, at: usize) -> &[FoundEvent] {
        let first = self
            .events
            .partition_point(|event| event.end as usize <= at);
        &self.events[first..]
    }

    /// Bytes of the last packet's events. `offset` is that of the packet, the header, and the bytes before.
    pub fn bytes_at(&self, offset: u64, size: usize) -> io::Result<&[u8]> {
        let begin = offset.checked_sub(self.offset + PacketHeader::SIZE as u64);
        let begin = begin.and_then(|begin| usize::try_from(begin).ok());
        let bytes = begin.and_then(|begin| self.content.get(begin..begin.checked_add(size)?));
        bytes.ok_or(io::ErrorKind::UnexpectedEof.into())
    }
}
