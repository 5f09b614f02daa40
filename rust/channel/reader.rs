// SPDX-License-Identifier: GPL-2.0

//! The reading side of a buffer: one reader at a time, packet by packet.

use super::buffer::Buffer;
use super::memory::Memory;
use super::packet;
use super::Channel;
use crate::abi::ioctl::Packet;
use crate::abi::packet::PacketHeader;
use crate::ring::consume::{Reader, Unavailable};
use crate::sys::errno::enodata;
use crate::sys::pipe::Pipe;
use crate::sys::wait::PollTable;
use kernel::fs::File;
use kernel::prelude::*;
use kernel::sync::Arc;
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
    ended: bool,
}

/// The packet that is held.
struct HeldPacket {
    packet: Packet,
    /// Where it is in memory.
    memory: u64,
    /// Bytes moved out.
    done: u64,
    /// Taken by read(2) on its own account, which gives it back itself.
    by_read: bool,
}

impl Cursor {
    pub(super) fn new(reader: Reader) -> Self {
        Self {
            reader,
            held: None,
            packets: 0,
            records: 0,
            ended: false,
        }
    }
}

impl Buffer {
    /// Whether a reader has seen the end of the trace, and none is there now.
    pub(super) fn is_read(&self) -> bool {
        self.opened.load() == 0 && self.reader.lock().ended
    }
}

/// The one reader of a buffer.
///
/// Dropping it, in whatever way the reader went, leaves an untaken packet for the next one.
pub(crate) struct StreamReader {
    channel: Arc<Channel>,
    cpu: u32,
}

impl StreamReader {
    /// Becomes the reader of `cpu`'s buffer.
    ///
    /// Fails with `ENODATA` if it has none, `EBUSY` if there is a reader. May sleep.
    pub(crate) fn new(channel: Arc<Channel>, cpu: u32) -> Result<Self> {
        let buffer = channel.buffer(cpu).ok_or_else(enodata)?;
        if !buffer.open() {
            return Err(EBUSY);
        }
        Ok(Self { channel, cpu })
    }

    fn buffer(&self) -> Result<&Buffer> {
        self.channel.buffer(self.cpu).ok_or_else(enodata)
    }

    /// Takes the oldest packet. `EAGAIN`: there is none now; `ENODATA`: there will be none;
    /// `EBUSY`: one is held. May sleep.
    pub(crate) fn get(&self) -> Result<Packet> {
        let buffer = self.buffer()?;
        let mut cursor = buffer.reader.lock();
        if cursor.held.is_some() {
            return Err(EBUSY);
        }
        cursor.take(buffer, false)
    }

    /// Gives the held packet back. `EINVAL`: none is held.
    pub(crate) fn put(&self) -> Result {
        let buffer = self.buffer()?;
        buffer.reader.lock().put(buffer)
    }

    /// Puts the held packet back as if it had not been taken.
    pub(crate) fn unget(&self) {
        if let Ok(buffer) = self.buffer() {
            let mut cursor = buffer.reader.lock();
            cursor.held = None;
            buffer.ring().unget(&mut cursor.reader);
        }
    }

    /// Has the packet being written closed. May sleep.
    pub(crate) fn flush(&self) -> Result {
        self.channel.flush(self.cpu)
    }

    /// Moves pages of the held packet into a pipe. 0 at its end; `EINVAL`: none is held.
    pub(crate) fn splice(&self, pipe: &mut Pipe, len: usize) -> Result<usize> {
        let buffer = self.buffer()?;
        let mut cursor = buffer.reader.lock();
        let held = cursor.held.as_mut().ok_or(EINVAL)?;
        let at = held.memory.wrapping_add(held.done) as usize;
        let moved = pipe.splice(buffer.memory.pages(), at, held.left(len))?;
        held.done = held.done.wrapping_add(moved as u64);
        Ok(moved)
    }

    /// Copies what comes next: of the held packet, or of packets that it takes and gives back
    /// itself. 0 at the end of a packet that was taken by [`get`](Self::get), and at the end of
    /// the trace. May sleep.
    pub(crate) fn read(&self, out: &mut UserSliceWriter, nonblock: bool) -> Result<usize> {
        let buffer = self.buffer()?;
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            let mut cursor = buffer.reader.lock();
            if cursor.held.is_none() {
                match cursor.take(buffer, true) {
                    Ok(_) => {}
                    Err(error) if error == enodata() => return Ok(0),
                    Err(EAGAIN) if !nonblock => {
                        drop(cursor);
                        // The wait below does not look if the ring keeps saying that it is
                        // readable, and the writer keeps being faster.
                        if kernel::current!().signal_pending() {
                            return Err(ERESTARTSYS);
                        }
                        buffer.waiters.wait_for(|| {
                            (buffer.is_finished() || buffer.ring().is_readable()).then_some(())
                        })?;
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            }
            return cursor.copy_out(buffer, out);
        }
    }

    /// What poll(2) answers (Algorithm 5).
    pub(crate) fn poll(&self, file: &File, table: &PollTable) -> u32 {
        use crate::sys::bindings::{POLLERR, POLLHUP, POLLIN, POLLPRI, POLLRDNORM};
        let Ok(buffer) = self.buffer() else {
            return POLLERR;
        };
        buffer.waiters.register(file, table);
        // Before the ring, as in `take`.
        let finished = buffer.is_finished();
        let mut cursor = buffer.reader.lock();
        // Equation (2), the one that get goes by: what poll calls readable can be got.
        if buffer.ring().is_readable() || cursor.held.is_some() {
            let urgent = if buffer.ring().is_almost_full() {
                POLLPRI
            } else {
                0
            };
            POLLIN | POLLRDNORM | urgent
        } else if finished {
            cursor.ended = true;
            POLLHUP
        } else {
            0
        }
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        if let Ok(buffer) = self.buffer() {
            self.unget();
            buffer.opened.store_release(0);
        }
    }
}

impl HeldPacket {
    fn left(&self, at_most: usize) -> usize {
        (self.packet.size.saturating_sub(self.done) as usize).min(at_most)
    }
}

impl Cursor {
    fn take(&mut self, buffer: &Buffer, by_read: bool) -> Result<Packet> {
        // Before the ring: if the trace was over then, what the ring says is final.
        let finished = buffer.is_finished();
        let mut taken = buffer.ring().get(&mut self.reader);
        if taken.is_err() && finished {
            // There may be room now to tell losses that were untold for want of it.
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
        let (sequence, content) = header(&buffer.memory, taken.memory);
        let packet = Packet {
            sequence,
            size: packet::size(content),
            content,
            records: taken.records,
        };
        self.held = Some(HeldPacket {
            packet,
            memory: taken.memory,
            done: 0,
            by_read,
        });
        Ok(packet)
    }

    fn put(&mut self, buffer: &Buffer) -> Result {
        self.held.take().ok_or(EINVAL)?;
        if let Some(packet) = buffer.ring().put(&mut self.reader) {
            self.packets = self.packets.wrapping_add(1);
            self.records = self.records.wrapping_add(packet.records);
        }
        Ok(())
    }

    fn copy_out(&mut self, buffer: &Buffer, out: &mut UserSliceWriter) -> Result<usize> {
        let Some(held) = &mut self.held else {
            return Ok(0);
        };
        let bytes = held.left(out.len());
        let at = held.memory.wrapping_add(held.done);
        buffer.memory.copy_out(at, bytes, out)?;
        held.done = held.done.wrapping_add(bytes as u64);
        if held.by_read && held.left(1) == 0 {
            self.put(buffer)?;
        }
        Ok(bytes)
    }
}

/// Number and bytes in use of the finished packet at `at`.
fn header(memory: &Memory, at: u64) -> (u64, u64) {
    let word = |offset: usize| memory.read_word(at.wrapping_add(offset as u64));
    (
        word(core::mem::offset_of!(PacketHeader, packet_seq_num)),
        word(core::mem::offset_of!(PacketHeader, content_size)) / 8,
    )
}
