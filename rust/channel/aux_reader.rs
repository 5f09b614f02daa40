// SPDX-License-Identifier: GPL-2.0

//! The reader of an AUX area: the code that has the area's file open, one at a time.
//!
//! The reader gets packets: a page with a header ([`AuxHeader`]), followed by pages of the area without change.
//! In discard mode there is a packet when a part of the area is full, and after each [`AuxReader::flush`]. In
//! overwrite mode only a flush makes packets. From then on, the area is not overwritten until all of them have
//! been read.

use super::aux::AuxArea;
use super::wakeup::PollTimer;
use super::Channel;
use crate::abi::aux::AuxHeader;
use crate::abi::ioctl::Packet;
use crate::abi::packet::{PacketHeader, MAGIC};
use crate::sys::errno::enodata;
use crate::sys::pages::{OwnPages, PAGE_SIZE};
use crate::sys::pipe::Pipe;
use crate::sys::wait::PollTable;
use kernel::fs::File;
use kernel::prelude::*;
use kernel::sync::Arc;

const PAGE: u64 = PAGE_SIZE as u64;

/// Maximum size of a packet after its header, in bytes; a multiple of the page size.
const LARGEST: u64 = 1 << 20;

/// Position of the reader.
pub(super) struct AuxCursor {
    /// First page of a packet.
    header: OwnPages,
    /// The packet that is held, or that the previous reader has left.
    packet: Option<Held>,
    /// Whether the packet is held.
    is_holding: bool,
    /// Number of the next packet.
    sequence: u64,
    /// Position at which the last packet ends.
    until: u64,
    /// Number of lost bytes that packets have reported.
    lost: u64,
    /// Number of bytes that were returned.
    pub(super) read: u64,
}

/// A packet: the area's bytes from one position to another. They do not cross the area's end.
struct Held {
    from: u64,
    to: u64,
    /// Number of bytes that were lost before it.
    lost: u64,
    /// Number of the packet's bytes that were moved out.
    done: u64,
}

impl Held {
    /// Position of the beginning of the first byte's page.
    fn first_page(&self) -> u64 {
        self.from - self.from % PAGE
    }

    /// Size of the packet after its header page, in bytes.
    fn pages(&self) -> u64 {
        match self.to - self.from {
            0 => 0,
            _ => self.to.next_multiple_of(PAGE) - self.first_page(),
        }
    }

    /// Size of the packet up to its last own byte.
    fn content(&self) -> u64 {
        match self.to - self.from {
            0 => AuxHeader::SIZE as u64,
            _ => PAGE + (self.to - self.first_page()),
        }
    }
}

impl AuxCursor {
    /// At the first byte. `header` must be one page.
    pub(super) fn new(header: OwnPages) -> Self {
        Self {
            header,
            packet: None,
            is_holding: false,
            sequence: 0,
            until: 0,
            lost: 0,
            read: 0,
        }
    }

    /// Whether there is nothing to read, now and later.
    pub(super) fn is_at_end(&mut self, area: &AuxArea) -> bool {
        area.is_finished() && !self.find(area, true)
    }

    /// Looks for a packet. `finished`: whether the last producer had ended before this call.
    fn find(&mut self, area: &AuxArea, finished: bool) -> bool {
        if self.packet.is_some() {
            return true;
        }
        let aux = &area.aux;
        if finished {
            aux.hold();
            self.until = aux.head();
        } else if !area.overwrites() && aux.unread() >= area.watermark {
            let head = aux.head();
            self.until = self.until.max(head - head % PAGE);
        }
        let Some(from) = aux.held() else {
            return false;
        };
        let lost = aux.counts().lost;
        if from < self.until {
            let end = from - aux.offset(from) + aux.size();
            let most = LARGEST.min(area.watermark);
            let to = self.until.min(end).min(from - from % PAGE + most);
            self.packet = Some(Held {
                from,
                to,
                lost,
                done: 0,
            });
        } else if finished && lost != self.lost {
            // No packet comes after these losses, so an empty packet reports them.
            self.packet = Some(Held {
                from,
                to: from,
                lost,
                done: 0,
            });
        }
        self.packet.is_some()
    }

    /// Takes the packet that [`find`](Self::find) found.
    fn take(&mut self, area: &AuxArea) -> Result<Packet> {
        let held = self.packet.as_ref().ok_or(EAGAIN)?;
        let (size, content) = (PAGE + held.pages(), held.content());
        let header = AuxHeader {
            packet: PacketHeader {
                magic: MAGIC,
                uuid: area.identity.uuid,
                stream_id: area.identity.stream_id,
                stream_instance_id: area.identity.cpu.into(),
                timestamp_begin: 0,
                timestamp_end: 0,
                content_size: content * 8,
                packet_size: size * 8,
                packet_seq_num: self.sequence,
                events_discarded: held.lost,
                cpu_id: area.identity.cpu,
            },
            position: held.from,
            offset: PAGE + held.from % PAGE,
            bytes: held.to - held.from,
        };
        let bytes = header.to_bytes();
        let front = self.header.bytes_mut().get_mut(..bytes.len());
        front.ok_or(EINVAL)?.copy_from_slice(&bytes);
        self.is_holding = true;
        Ok(Packet {
            sequence: self.sequence,
            size,
            content,
            records: 0,
        })
    }

    /// Returns the held packet. `EINVAL`: no packet is held.
    fn put(&mut self, area: &AuxArea) -> Result {
        if !self.is_holding {
            return Err(EINVAL);
        }
        let held = self.packet.take().ok_or(EINVAL)?;
        self.is_holding = false;
        self.sequence += 1;
        self.lost = held.lost;
        self.read += held.to - held.from;
        area.aux.free(held.to);
        if held.to >= self.until {
            self.release(area);
        }
        Ok(())
    }

    /// In overwrite mode, lets producers overwrite the area again, after all flushed packets were read.
    fn release(&self, area: &AuxArea) {
        // A finished area keeps its remaining bytes.
        if !area.is_finished() {
            area.aux.release();
        }
    }

    /// Puts the held packet back as if it had not been taken.
    fn unget(&mut self) {
        self.is_holding = false;
        if let Some(packet) = &mut self.packet {
            packet.done = 0;
        }
    }

    /// Ends the reader's use. While producers still write in overwrite mode, the next reader inherits no
    /// packet. Its first packet may begin elsewhere, so it has another number.
    fn leave(&mut self, area: &AuxArea) {
        self.unget();
        if area.overwrites() && !area.is_finished() {
            if self.packet.take().is_some() {
                self.sequence += 1;
            }
            area.aux.release();
        }
    }
}

/// The only reader of an area.
pub(crate) struct AuxReader {
    area: Arc<AuxArea>,
    /// Wakes this reader if the CPU is isolated.
    _poller: Option<PollTimer<Arc<AuxArea>>>,
}

impl AuxReader {
    /// Becomes the reader of `cpu`'s area. Errors: `ENODATA` if there is none, `EBUSY` if it has a reader, or
    /// `ENOMEM`. May sleep.
    pub(crate) fn new(channel: &Channel, cpu: u32) -> Result<Self> {
        let area = channel.area_to_keep(cpu).ok_or_else(enodata)?;
        if !area.wakeup.open(cpu) {
            return Err(EBUSY);
        }
        let poller = area.wakeup.poller(area.clone(), |area| area.poll_tick());
        let poller = poller.inspect_err(|_| area.wakeup.close())?;
        Ok(Self {
            area,
            _poller: poller,
        })
    }

    /// Takes the oldest packet. Errors: `EAGAIN` if there is none now, `ENODATA` if there will be none, `EBUSY`
    /// if one is held. May sleep.
    pub(crate) fn get(&self) -> Result<Packet> {
        let area = &self.area;
        let mut cursor = area.cursor.lock();
        if cursor.is_holding {
            return Err(EBUSY);
        }
        let finished = area.is_finished();
        match cursor.find(area, finished) {
            true => cursor.take(area),
            false if finished => Err(enodata()),
            false => Err(EAGAIN),
        }
    }

    /// Returns the held packet. `EINVAL`: no packet is held.
    pub(crate) fn put(&self) -> Result {
        self.area.cursor.lock().put(&self.area)
    }

    /// Puts the held packet back as if it had not been taken.
    pub(crate) fn unget(&self) {
        self.area.cursor.lock().unget();
    }

    /// Makes packets of all that is in the area now.
    pub(crate) fn flush(&self) {
        let area = &self.area;
        let mut cursor = area.cursor.lock();
        let from = area.aux.hold();
        cursor.until = area.aux.head();
        if from == cursor.until {
            // There is no packet whose return would release the area.
            cursor.release(area);
        }
    }

    /// Moves bytes of the held packet into a pipe. Returns 0 at its end. `EINVAL`: no packet is held.
    pub(crate) fn splice(&self, pipe: &mut Pipe, len: usize) -> Result<usize> {
        let area = &self.area;
        let cursor = &mut *area.cursor.lock();
        let AuxCursor {
            header,
            packet: Some(held),
            is_holding: true,
            ..
        } = cursor
        else {
            return Err(EINVAL);
        };
        let moved = match held.done.checked_sub(PAGE) {
            None => {
                let left = len.min((PAGE - held.done) as usize);
                pipe.splice(header.pages(), held.done as usize, left)?
            }
            Some(behind) => {
                let left = len.min((held.pages() - behind) as usize);
                let at = area.aux.offset(held.first_page()) + behind;
                pipe.splice(&area.pages, at as usize, left)?
            }
        };
        held.done += moved as u64;
        Ok(moved)
    }

    /// Events for poll(2).
    pub(crate) fn poll(&self, file: &File, table: &PollTable<'_>) -> u32 {
        use crate::sys::bindings::{POLLERR, POLLHUP, POLLIN, POLLRDNORM};
        let area = &self.area;
        if area.wakeup.waiters().register(file, table).is_err() {
            return POLLERR;
        }
        let mut cursor = area.cursor.lock();
        // Read before the positions, as in `get`.
        let finished = area.is_finished();
        if cursor.find(area, finished) {
            POLLIN | POLLRDNORM
        } else if finished {
            POLLHUP
        } else {
            0
        }
    }
}

impl Drop for AuxReader {
    fn drop(&mut self) {
        self.area.cursor.lock().leave(&self.area);
        self.area.wakeup.close();
    }
}
