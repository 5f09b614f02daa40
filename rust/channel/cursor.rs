// SPDX-License-Identifier: GPL-2.0

//! Where a stream's reader is: packet by packet through a buffer.

use super::platform::Kernel;
use super::reader::Censor;
use super::Buffer;
use crate::abi::ioctl::{MappedPacket, Packet};
use crate::abi::packet::PacketHeader;
use crate::record::memory::Memory;
use crate::record::packet;
use crate::ring::consume::{Reader, Unavailable};
use crate::sys::errno::enodata;
use crate::sys::pages::Pages;
use crate::sys::pipe::Pipe;
use kernel::prelude::*;
use kernel::uaccess::UserSliceWriter;

/// Where a buffer's reader is.
pub(super) struct Cursor {
    reader: Reader,
    held: Option<HeldPacket>,
    /// Packets given to readers and put back.
    pub(super) packets: u64,
    /// Records in them.
    pub(super) records: u64,
    /// Whether a reader has seen the end of the trace: nothing is here any more.
    pub(super) ended: bool,
    /// What is known of the packets that were given back.
    pub(super) seen: Seen,
}

/// What a reader knows of a stream, and the reader after it, too.
#[derive(Clone, Copy, Default)]
pub(crate) struct Seen {
    /// The number of the next packet, if none is overwritten before.
    pub(crate) next: u64,
    /// Records that were discarded until the last packet was closed.
    pub(crate) discarded: u64,
}

/// The packet that is held.
struct HeldPacket {
    packet: Packet,
    /// Where it is in memory.
    memory: u64,
    /// What is known when it was read.
    seen: Seen,
    /// Bytes moved out.
    done: u64,
    /// Taken by read(2) on its own account, which gives it back itself.
    by_read: bool,
}

impl HeldPacket {
    fn left(&self, at_most: usize) -> usize {
        (self.packet.size.saturating_sub(self.done) as usize).min(at_most)
    }
}

impl Cursor {
    /// At the first packet.
    pub(super) fn new(reader: Reader) -> Self {
        Self {
            reader,
            held: None,
            packets: 0,
            records: 0,
            ended: false,
            seen: Seen::default(),
        }
    }

    /// Whether a packet is held.
    pub(super) fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    /// Takes the oldest packet; none is held. `finished`: whether the trace was over before the
    /// ring is asked here, so that what the ring says is final. `EAGAIN`: there is none now;
    /// `ENODATA`: there will be none; `EIO`: the censor refuses it, and it stays.
    pub(super) fn take(
        &mut self,
        buffer: &Buffer,
        finished: bool,
        by_read: bool,
        censor: Option<&impl Censor>,
    ) -> Result<MappedPacket> {
        let mut taken = buffer.ring().get(&mut self.reader);
        if taken.is_err() && finished {
            // There may be room now to report losses that found none before.
            buffer.report_losses();
            taken = buffer.ring().get(&mut self.reader);
        }
        let taken = taken.map_err(|why| match why {
            Unavailable::Empty if finished => {
                self.ended = true;
                enodata()
            }
            Unavailable::Empty | Unavailable::Busy => EAGAIN,
        })?;
        let (sequence, content, discarded) = header(buffer.memory(), taken.memory);
        let size = packet::size::<Kernel>(content);
        if let Some(censor) = censor {
            let memory = buffer.memory();
            let censored = memory.edit(taken.memory, size as usize, |packet| {
                let (content, padding) =
                    packet.split_at_mut_checked(content as usize).ok_or(EIO)?;
                // What earlier packets left there.
                padding.fill(0);
                censor.censor(content)
            });
            if censored.is_err() {
                self.unget(buffer);
                return Err(EIO);
            }
        }
        let packet = Packet {
            sequence,
            size,
            content,
            records: taken.records,
        };
        self.held = Some(HeldPacket {
            packet,
            memory: taken.memory,
            seen: Seen {
                next: sequence.wrapping_add(1),
                discarded,
            },
            done: 0,
            by_read,
        });
        Ok(MappedPacket {
            packet,
            offset: taken.memory,
        })
    }

    /// Gives the held packet back. `EINVAL`: none is held.
    pub(super) fn put(&mut self, buffer: &Buffer) -> Result {
        self.seen = self.held.take().ok_or(EINVAL)?.seen;
        if let Some(packet) = buffer.ring().put(&mut self.reader) {
            self.packets = self.packets.wrapping_add(1);
            self.records = self.records.wrapping_add(packet.records);
        }
        Ok(())
    }

    /// Puts the held packet back as if it had not been taken.
    pub(super) fn unget(&mut self, buffer: &Buffer) {
        self.held = None;
        buffer.ring().unget(&mut self.reader);
    }

    /// The content of the held packet. `EINVAL`: none is held.
    pub(super) fn content<'a>(&self, buffer: &'a Buffer) -> Result<&'a [u8]> {
        let held = self.held.as_ref().ok_or(EINVAL)?;
        let memory = buffer.memory();
        Ok(memory.bytes(held.memory, held.packet.content as usize))
    }

    /// Moves pages of the held packet into a pipe. 0 at its end; `EINVAL`: none is held.
    pub(super) fn splice(&mut self, buffer: &Buffer, pipe: &mut Pipe, len: usize) -> Result<usize> {
        let held = self.held.as_mut().ok_or(EINVAL)?;
        let at = held.memory.wrapping_add(held.done) as usize;
        let moved = pipe.splice(buffer.memory().pages(), at, held.left(len))?;
        held.done = held.done.wrapping_add(moved as u64);
        Ok(moved)
    }

    /// Copies bytes of the held packet, and gives it back at its end if read(2) took it. 0: none is
    /// held, or it is at its end.
    pub(super) fn copy_out(&mut self, buffer: &Buffer, out: &mut UserSliceWriter) -> Result<usize> {
        let Some(held) = &mut self.held else {
            return Ok(0);
        };
        let bytes = held.left(out.len());
        let at = held.memory.wrapping_add(held.done);
        out.write_slice(buffer.memory().bytes(at, bytes))?;
        held.done = held.done.wrapping_add(bytes as u64);
        if held.by_read && held.left(1) == 0 {
            self.put(buffer)?;
        }
        Ok(bytes)
    }
}

/// Number and bytes in use of the finished packet at `at`, and the records that were discarded until then.
fn header(memory: &Memory<Pages>, at: u64) -> (u64, u64, u64) {
    let word = |offset: usize| memory.read_word(at.wrapping_add(offset as u64));
    (
        word(core::mem::offset_of!(PacketHeader, packet_seq_num)),
        word(core::mem::offset_of!(PacketHeader, content_size)) / 8,
        word(core::mem::offset_of!(PacketHeader, events_discarded)),
    )
}
