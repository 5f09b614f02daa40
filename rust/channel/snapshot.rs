// SPDX-License-Identifier: GPL-2.0

//! A snapshot of a stream: all its packets are taken at once, and read later.
//!
//! The buffer gets a second bank of memory, which the writer uses from then on
//! ([`ring::exchange`](crate::ring::exchange)). The first bank is freed when its packets are read, or kept for the
//! next snapshot if the channel is configured so. If the reader ends before that, the unread packets go back into
//! the buffer, except where the writer has used their slots.

use super::cursor::Cursor;
use super::writer::Writer;
use super::Buffer;
use crate::record::memory::Pages as _;
use crate::ring::exchange::{Taken, Vacated};
use crate::ring::Mode;
use crate::sys::errno::eopnotsupp;
use crate::sys::pages::KernelPages;
use crate::sys::sort::sort_by;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::time::{delay::fsleep, Delta};

/// Number of attempts on the writer's CPU. A record that was interrupted is complete soon.
const TRIES: usize = 100;
/// Number of attempts without a pause between them.
const QUICK_TRIES: usize = 5;
/// Pause between the other attempts.
const PAUSE: Delta = Delta::from_micros(50);

/// A snapshot of one buffer.
#[derive(Default)]
pub(super) struct Snapshot {
    /// Whether memory is kept for the next snapshot.
    keeps_memory: bool,
    /// Memory for the buffer, until the packets are taken; afterwards kept memory.
    spare: Option<Arc<KernelPages>>,
    /// Whether a slot may still have the old memory.
    is_exchanging: bool,
    /// The packets that are not read yet, from the newest to the oldest.
    taken: KVVec<Taken>,
    /// The packet that the reader holds.
    held: Option<Taken>,
    /// The old memory, once no slot of the buffer has it any more.
    vacated: Option<Vacated>,
}

impl Snapshot {
    /// No snapshot.
    pub(super) fn new(keeps_memory: bool) -> Self {
        Self {
            keeps_memory,
            ..Self::default()
        }
    }

    /// Whether the buffer has memory of two banks.
    pub(super) fn is_taken(&self) -> bool {
        self.is_exchanging || self.vacated.is_some()
    }

    /// Whether a packet is left to read.
    pub(super) fn has_packets(&self) -> bool {
        !self.taken.is_empty()
    }

    /// Whether a slot may still have the old memory. While this is true, no other packet is taken from the
    /// ring.
    pub(super) fn is_exchanging(&self) -> bool {
        self.is_exchanging
    }

    /// Gives the reader the oldest packet, if there is one.
    pub(super) fn take(&mut self) -> Option<&Taken> {
        let taken = self.taken.pop()?;
        Some(self.held.insert(taken))
    }

    /// Takes back the held packet after it was read.
    pub(super) fn put(&mut self) -> Option<Taken> {
        self.held.take()
    }

    /// Takes back the held packet, if there is one, as unread.
    pub(super) fn unget(&mut self) {
        if let Some(taken) = self.held.take() {
            // There is room, because the packet was in the list before.
            let _ = self.taken.push_within_capacity(taken);
        }
    }
}

impl Cursor {
    /// Size in bytes of the memory that must be prepared for a snapshot; [`None`]: it is prepared. Errors:
    /// `EOPNOTSUPP` in discard mode, where packets stay anyway; `EBUSY` if a snapshot is taken already, or a
    /// program maps the memory; `ENOMEM` if the buffer is in reserved memory, where no more is free.
    pub(super) fn needed(&self, buffer: &Buffer) -> Result<Option<usize>> {
        if self.snapshot.is_taken() || self.is_mapped {
            return Err(EBUSY);
        }
        if self.snapshot.spare.is_some() {
            return Ok(None);
        }
        let (_, used) = buffer.pages(&self.reader).ok_or(ENOMEM)?;
        if buffer.ring().mode() == Mode::Discard {
            return Err(eopnotsupp());
        }
        if used.is_reserved() {
            return Err(ENOMEM);
        }
        Ok(Some(used.len()))
    }

    /// Stores these pages for a snapshot. May sleep.
    pub(super) fn prepare(&mut self, buffer: &Buffer, pages: Arc<KernelPages>) -> Result {
        let count = buffer.ring().geometry().count() as usize;
        self.snapshot.taken.reserve(count, GFP_KERNEL)?;
        self.snapshot.spare = Some(pages);
        Ok(())
    }

    /// Closes the packet being written, and takes all packets; the writer gets the prepared memory. Returns
    /// their number. `EAGAIN`: a slot was written to at each attempt; the packets are still in the buffer, or
    /// again. May sleep.
    pub(super) fn take_all(&mut self, buffer: &Buffer, writer: &Writer<'_>) -> Result<usize> {
        let spare = self.snapshot.spare.take().ok_or(EBUSY)?;
        let base = spare.base();
        let bank = buffer.add_bank(&mut self.reader, spare).ok_or(EBUSY)?;
        let platform = buffer.ring().platform();
        platform.location.listed.subbufs(bank, Some(base));
        self.snapshot.is_exchanging = true;
        if !self.exchange_all(buffer, writer) {
            self.end_snapshot(buffer, writer);
            return Err(EAGAIN);
        }
        if !self.snapshot.has_packets() {
            self.free(buffer);
        }
        Ok(self.snapshot.taken.len())
    }

    /// Exchanges the memory of all slots, on the writer's CPU. Returns whether that succeeded.
    fn exchange_all(&mut self, buffer: &Buffer, writer: &Writer<'_>) -> bool {
        for attempt in 0..TRIES {
            if attempt >= QUICK_TRIES {
                fsleep(PAUSE);
            }
            let mut work = (buffer, &mut *self);
            let acted = writer.act(buffer.ring().platform(), &mut work, |(buffer, cursor)| {
                cursor.exchange(buffer)
            });
            // The deputy of an isolated CPU has tried often enough.
            if acted.is_err() {
                break;
            }
            if !self.snapshot.is_exchanging {
                break;
            }
        }
        let ring = buffer.ring();
        let taken = &mut self.snapshot.taken;
        sort_by(taken, |one, other| {
            ring.sequence(&other.packet())
                .cmp(&ring.sequence(&one.packet()))
        });
        if self.snapshot.is_exchanging {
            return false;
        }
        while let Some(late) = self.snapshot.taken.iter().rposition(Taken::is_late) {
            if let Ok(taken) = self.snapshot.taken.remove(late) {
                buffer.restore(&mut self.reader, taken);
            }
        }
        true
    }

    /// Exchanges the memory of as many slots as possible. On the writer's CPU with interrupts off, or while
    /// that CPU is offline.
    fn exchange(&mut self, buffer: &Buffer) {
        let Self {
            reader, snapshot, ..
        } = self;
        let taken = &mut snapshot.taken;
        snapshot.vacated = buffer.exchange(reader, |packet| {
            // There is room for one packet of each slot.
            let _ = taken.push_within_capacity(packet);
        });
        snapshot.is_exchanging = snapshot.vacated.is_none();
    }

    /// Ends the snapshot, if there is one: unread packets go back into the buffer. May sleep.
    pub(super) fn end_snapshot(&mut self, buffer: &Buffer, writer: &Writer<'_>) {
        self.restore_all(buffer);
        if self.snapshot.is_exchanging && self.exchange_all(buffer, writer) {
            self.restore_all(buffer);
        }
        self.free(buffer);
    }

    /// Ends the reader's use.
    pub(super) fn leave(&mut self) {
        if !self.snapshot.keeps_memory {
            self.snapshot.spare = None;
        }
        self.is_mapped = false;
    }

    fn restore_all(&mut self, buffer: &Buffer) {
        while let Some(taken) = self.snapshot.taken.pop() {
            buffer.restore(&mut self.reader, taken);
        }
    }

    /// Frees the old memory, or keeps it, if no slot has it any more. No packet of it is held.
    pub(super) fn free(&mut self, buffer: &Buffer) {
        let Some(vacated) = self.snapshot.vacated.take() else {
            return;
        };
        let platform = buffer.ring().platform();
        platform.location.listed.subbufs(vacated.bank(), None);
        let pages = buffer.free(&mut self.reader, vacated);
        if self.snapshot.keeps_memory {
            let unused = pages.and_then(Arc::into_unique_or_drop);
            self.snapshot.spare = unused.map(Arc::from);
        }
        // The room for packets belongs to the memory.
        if self.snapshot.spare.is_none() {
            self.snapshot.taken = KVVec::new();
        }
    }
}
