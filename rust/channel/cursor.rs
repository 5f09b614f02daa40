// SPDX-License-Identifier: GPL-2.0

//! Position of a stream's reader, which takes a buffer's packets one by one; and the packet that it holds.

use super::config::Config;
use super::platform::Kernel;
use super::reader::Censor;
use super::snapshot::Snapshot;
use super::Buffer;
use crate::abi::ioctl::{MappedPacket, Packet};
use crate::abi::packet::PacketHeader;
use crate::record::memory::PacketMemory;
use crate::record::packet;
use crate::ring::consume::{self as ring, Reader, Unavailable};
use crate::sys::errno::enodata;
use crate::sys::pages::{KernelPages, OwnPages};
use crate::sys::pipe::Pipe;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::uaccess::UserSliceWriter;

/// Position of a buffer's reader.
pub(super) struct Cursor {
    pub(super) reader: Reader,
    /// Whether the reader holds a packet.
    is_holding: bool,
    pub(super) snapshot: Snapshot,
    /// Whether a program maps the buffer's memory.
    pub(super) is_mapped: bool,
    /// Number of packets that readers took and returned.
    pub(super) packets: u64,
    /// Number of records in them.
    pub(super) records: u64,
    /// Whether a reader has seen the end of the trace: no packet is left.
    pub(super) ended: bool,
    /// State after the packets that were returned.
    pub(super) seen: Seen,
}

/// State of a stream's reading, which the next reader inherits.
#[derive(Clone, Copy, Default)]
pub(crate) struct Seen {
    /// Number of the next packet, if no packet is overwritten before.
    pub(crate) next: u64,
    /// Number of records that were discarded before the last packet was closed.
    pub(crate) discarded: u64,
}

/// A packet that the reader holds.
pub(super) struct HeldPacket {
    packet: Packet,
    memory: PacketMemory<Arc<KernelPages>>,
    /// Copy of the packet without what its reader may not see. The copy has pages that no other packet ever
    /// uses. The buffer's own bytes stay unchanged.
    censored: Option<OwnPages>,
    /// State after this packet.
    seen: Seen,
    /// Number of bytes that were moved out.
    done: u64,
    /// read(2) has taken the packet without a request for it, and returns it itself.
    by_read: bool,
}

impl HeldPacket {
    /// Makes a copy of the packet, near `cpu`, that has only what `censor` lets through. May sleep.
    pub(super) fn censor(&mut self, cpu: u32, censor: &impl Censor) -> Result {
        let mut copy = OwnPages::new(self.packet.size as usize, cpu).ok_or(ENOMEM)?;
        let content = self.content();
        // The copy's padding is 0. In the buffer the padding has bytes of earlier packets.
        let shown = copy.bytes_mut().get_mut(..content.len()).ok_or(EIO)?;
        shown.copy_from_slice(content);
        censor.censor(shown)?;
        self.censored = Some(copy);
        Ok(())
    }

    /// The packet's description for the reader.
    pub(super) fn describe(&self) -> MappedPacket {
        MappedPacket {
            packet: self.packet,
            offset: self.memory.offset() as u64,
        }
    }

    /// The packet's content, as its reader sees it.
    pub(super) fn content(&self) -> &[u8] {
        self.bytes(0, self.packet.content as usize)
    }

    /// Moves pages of the packet into a pipe. Returns 0 at its end.
    pub(super) fn splice(&mut self, pipe: &mut Pipe, len: usize) -> Result<usize> {
        let (pages, from) = match &self.censored {
            Some(copy) => (copy.pages(), 0),
            None => (&**self.memory.pages(), self.memory.offset()),
        };
        let at = from.wrapping_add(self.done as usize);
        let moved = pipe.splice(pages, at, self.left(len))?;
        self.done = self.done.wrapping_add(moved as u64);
        Ok(moved)
    }

    /// Copies bytes of the packet that were not moved out yet. Returns 0 at its end. May sleep until the user
    /// memory is present, possibly for ever.
    pub(super) fn copy_out(&mut self, out: &mut UserSliceWriter) -> Result<usize> {
        let len = self.left(out.len());
        out.write_slice(self.bytes(self.done, len))?;
        self.done = self.done.wrapping_add(len as u64);
        Ok(len)
    }

    /// Whether read(2) has taken the packet, and has copied all of it.
    pub(super) fn is_read(&self) -> bool {
        self.by_read && self.left(1) == 0
    }

    fn left(&self, at_most: usize) -> usize {
        (self.packet.size.saturating_sub(self.done) as usize).min(at_most)
    }

    /// Bytes of the packet, as its reader sees them.
    fn bytes(&self, from: u64, len: usize) -> &[u8] {
        match &self.censored {
            Some(copy) => {
                let rest = copy.bytes().get(from as usize..).unwrap_or(&[]);
                rest.get(..len).unwrap_or(rest)
            }
            None => self.memory.bytes(from as usize, len),
        }
    }
}

impl Cursor {
    /// At the first packet. Snapshots keep their memory if the channel is `config`ured so.
    pub(super) fn new(reader: Reader, config: &Config) -> Self {
        Self {
            reader,
            is_holding: false,
            snapshot: Snapshot::new(config.keeps_snapshot_memory),
            is_mapped: false,
            packets: 0,
            records: 0,
            ended: false,
            seen: Seen::default(),
        }
    }

    /// Whether a packet is held.
    pub(super) fn is_holding(&self) -> bool {
        self.is_holding
    }

    /// Takes the oldest packet. No packet may be held. `finished`: whether the trace was over before this call;
    /// then the ring's state is final. Errors: `EAGAIN` if there is no packet now, `ENODATA` if there will be
    /// none.
    pub(super) fn take(
        &mut self,
        buffer: &Buffer,
        finished: bool,
        by_read: bool,
    ) -> Result<HeldPacket> {
        let taken = match self.snapshot.take() {
            Some(taken) => taken.packet(),
            None => self.get(buffer, finished)?,
        };
        let memory = buffer.packet(&self.reader, &taken).ok_or(EIO)?;
        self.is_holding = true;
        let (sequence, content, discarded) = header(&memory);
        Ok(HeldPacket {
            packet: Packet {
                sequence,
                size: packet::size::<Kernel>(content),
                content,
                records: taken.records,
            },
            memory,
            censored: None,
            seen: Seen {
                next: sequence.wrapping_add(1),
                discarded,
            },
            done: 0,
            by_read,
        })
    }

    /// Takes the oldest packet in the ring.
    fn get(&mut self, buffer: &Buffer, finished: bool) -> Result<ring::TakenPacket> {
        if self.snapshot.is_exchanging() {
            return Err(EAGAIN);
        }
        let mut taken = buffer.ring().get(&mut self.reader);
        if taken.is_err() && finished {
            // There may be room now for a report of losses that found none before.
            buffer.report_losses();
            taken = buffer.ring().get(&mut self.reader);
        }
        taken.map_err(|why| match why {
            Unavailable::Empty if finished => {
                self.ended = true;
                enodata()
            }
            Unavailable::Empty | Unavailable::Busy => EAGAIN,
        })
    }

    /// Returns the held packet.
    pub(super) fn put(&mut self, buffer: &Buffer, held: HeldPacket) {
        self.is_holding = false;
        self.seen = held.seen;
        // Before its memory is free.
        drop(held);
        let packet = match self.snapshot.put() {
            Some(taken) => {
                buffer.ring().release(&taken);
                if !self.snapshot.has_packets() {
                    self.free(buffer);
                }
                Some(taken.packet())
            }
            None => buffer.ring().put(&mut self.reader),
        };
        if let Some(packet) = packet {
            self.packets = self.packets.wrapping_add(1);
            self.records = self.records.wrapping_add(packet.records);
        }
    }

    /// Puts the held packet back, if there is one, as if it had not been taken.
    pub(super) fn unget(&mut self, buffer: &Buffer) {
        self.is_holding = false;
        self.snapshot.unget();
        buffer.ring().unget(&mut self.reader);
    }
}

/// Number, content size in bytes and discarded records in the header of a finished packet.
fn header(packet: &PacketMemory<Arc<KernelPages>>) -> (u64, u64, u64) {
    (
        packet.word(core::mem::offset_of!(PacketHeader, packet_seq_num)),
        packet.word(core::mem::offset_of!(PacketHeader, content_size)) / 8,
        packet.word(core::mem::offset_of!(PacketHeader, events_discarded)),
    )
}
