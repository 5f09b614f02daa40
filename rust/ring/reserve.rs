// SPDX-License-Identifier: GPL-2.0

//! Reserving space for a record: the paper's Algorithms 1 and 2, and PUSHREADER.

use super::lost::Lost;
use super::platform::{Local, Platform, Shared};
use super::slot::{Slot, Slots};
use super::switch::Closed;
use super::{Mode, Ring};

/// Space for a record. The caller owns it until the commit.
pub struct Reserved<'a, P: Platform> {
    /// Address in the buffer's memory.
    pub memory: u64,
    /// Size in bytes.
    pub len: u64,
    /// Time of the reservation, not before that of any earlier reservation.
    pub time: u64,
    pub(super) slot: &'a Slot<P>,
}

/// The part of a [`Reserved`] that the commit needs.
pub struct Pending<'a, P: Platform> {
    pub(super) len: u64,
    pub(super) slot: &'a Slot<P>,
}

impl<'a, P: Platform> Reserved<'a, P> {
    /// Drops the address and the time, which only the writing of the record needs.
    #[inline(always)]
    pub fn pending(self) -> Pending<'a, P> {
        let Self { len, slot, .. } = self;
        Pending { len, slot }
    }
}

/// A packet that a reservation opened. The caller must write its header, then commit it.
pub struct Opened<'a, P: Platform> {
    /// Address of the header in the buffer's memory.
    pub memory: u64,
    /// Number of the packet, from 0.
    pub sequence: u64,
    /// Time of the reservation.
    pub time: u64,
    pub(super) slot: &'a Slot<P>,
}

/// Result of a reservation that may switch sub-buffers.
///
/// The caller must act in this order: write and commit `closed`, then `opened`; write `filled`;
/// write and commit the record.
pub struct Switched<'a, P: Platform> {
    /// The packet that the reservation closed.
    pub closed: Option<Closed<'a, P>>,
    /// The packet that the reservation opened.
    pub opened: Option<Opened<'a, P>>,
    /// The packet that the record fills to the last byte. It has no padding: the commit of the
    /// record completes the packet.
    pub filled: Option<Closed<'a, P>>,
    /// Space for the record.
    pub record: Reserved<'a, P>,
}

/// Result of one pass through the reserve loop.
enum Attempt<'a, P: Platform> {
    Done(Switched<'a, P>),
    /// A nested context moved `wcnt`: try again.
    Raced,
    Lost(Lost),
}

/// The time of a reservation, and the size of the record at that time.
#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    /// Reading of the clock.
    pub time: u64,
    /// Size in bytes, header included; not 0, and less than 2^32.
    pub len: u64,
}

impl<P: Platform> Ring<P> {
    /// Makes one attempt at the common case: the record, of `len` bytes, fits into the open packet
    /// and leaves room.
    ///
    /// `now` reads the clock, and may return [`None`] to give up. After [`None`] the caller calls
    /// [`reserve`](Self::reserve), which handles every case.
    ///
    /// Context: the buffer's CPU, preemption disabled; any context, NMI included.
    #[inline(always)]
    pub fn reserve_open(
        &self,
        len: u64,
        now: impl FnOnce() -> Option<u64>,
    ) -> Option<Reserved<'_, P>> {
        let old = self.wcnt.load();
        let slot = self.slots.open();
        let new = self.geometry.advance(old, len);
        if !self.geometry.lies_in_packet(new, slot.last.load()) {
            return None;
        }
        // Between the load and the cmpxchg of `wcnt`, so that times grow with positions (Algorithm
        // 2).
        let time = now()?;
        if !self.wcnt.compare_exchange(old, new) {
            return None;
        }
        Some(Reserved {
            // `last` and `to_memory` were of this packet when `last` was read, and they still are.
            // The packet is not complete before this record, and its memory stays held until then
            // (I2).
            memory: self.geometry.advance(old, slot.to_memory.load()),
            len,
            time,
            slot,
        })
    }

    /// Refuses and counts a record of `len` bytes if the buffer is full and the open packet has no
    /// room for it. This is the cheap way to lose a record.
    ///
    /// Context: as [`reserve_open`](Self::reserve_open).
    #[inline(always)]
    pub fn refuse_if_full(&self, len: u64) -> bool {
        let old = self.wcnt.load();
        let room = self.geometry.room(old);
        // `rcnt` is the first position of a sub-buffer, like `start`.
        let start = self.geometry.advance(old, room);
        let refused = room < len
            && self.geometry.distance(self.rcnt.load(), start) >= self.full_at
            && len <= self.largest;
        if refused {
            self.lost.count(Lost::Full);
        }
        refused
    }

    /// Reserves space for a record (Algorithms 1 and 2).
    ///
    /// `stamp` reads the clock and returns the record's size at that time. It may be called several
    /// times. On `Err` nothing was reserved, and the loss is counted.
    ///
    /// Context: the buffer's CPU, preemption disabled; any context, NMI included.
    pub fn reserve(&self, stamp: impl Fn() -> Stamp) -> Result<Switched<'_, P>, Lost> {
        loop {
            let old = self.wcnt.load();
            let Stamp { time, len } = stamp();
            match self.attempt(old, time, len) {
                Attempt::Done(switched) => return Ok(switched),
                Attempt::Raced => {}
                Attempt::Lost(reason) => {
                    self.lost.count(reason);
                    return Err(reason);
                }
            }
        }
    }

    fn attempt(&self, old: u64, time: u64, len: u64) -> Attempt<'_, P> {
        let geometry = &self.geometry;
        let size = geometry.size();
        // First, so that a record that never fits is not counted as [`Lost::Full`].
        if len > self.largest {
            return Attempt::Lost(Lost::TooLarge);
        }
        let offset = geometry.offset(old);
        let fits = offset != 0 && offset.wrapping_add(len) <= size;
        let (start, at) = if fits {
            (geometry.start(old), old)
        } else {
            let start = if offset == 0 { old } else { geometry.next(old) };
            (start, geometry.advance(start, self.header))
        };
        let Some(slot) = self.slot(start) else {
            return Attempt::Lost(Lost::Wrapped);
        };
        if !fits {
            if let Err(reason) = self.may_open(start, slot) {
                // `wcnt`, `commit_seq` and `rcnt` were read one after the other. The result is
                // valid only if no nested context has reserved meanwhile.
                return if self.wcnt.load() == old {
                    Attempt::Lost(reason)
                } else {
                    Attempt::Raced
                };
            }
        }
        let discarded = self.lost.discarded();
        let end = geometry.advance(at, len);
        if !self.wcnt.compare_exchange(old, end) {
            return Attempt::Raced;
        }

        if !fits && self.mode == Mode::Overwrite {
            self.push_reader(start);
        }
        self.hold(slot, start);
        self.slots.set_open(geometry.index(start));
        let to_memory = slot.to_memory.load();
        let base = geometry.advance(start, to_memory);
        let closed = if !fits && offset != 0 {
            self.close(old, time, discarded)
        } else {
            None
        };
        let opened = (!fits).then(|| Opened {
            memory: base,
            sequence: geometry.sequence(self.origin, start),
            time,
            slot,
        });
        let filled = (geometry.offset(end) == 0).then(|| {
            self.reported.store(discarded);
            Closed::new(base, size, time, discarded, slot)
        });
        Attempt::Done(Switched {
            closed,
            opened,
            filled,
            record: Reserved {
                memory: geometry.advance(at, to_memory),
                len,
                time,
                slot,
            },
        })
    }

    /// Returns whether the sub-buffer that begins at `start` may be written.
    pub(super) fn may_open(&self, start: u64, slot: &Slot<P>) -> Result<(), Lost> {
        if !self
            .geometry
            .is_fully_committed(start, slot.commit_seq.load())
        {
            return Err(Lost::Wrapped);
        }
        // W2: pairs with R3. The following writes to memory that the reader freed stay after this
        // load. The control dependency alone would not order plain stores.
        if self.mode == Mode::Discard && self.geometry.is_full(start, self.rcnt.load_acquire()) {
            return Err(Lost::Full);
        }
        Ok(())
    }

    /// Overwrite mode: advances `rcnt` until there is room for the sub-buffer at `start`
    /// (PUSHREADER). Each pass tests again, because the reader may put meanwhile.
    ///
    /// `start - rcnt` is never negative. The caller's sub-buffer is not committed, so neither the
    /// reader nor a nested writer passes it (I3).
    pub(super) fn push_reader(&self, start: u64) {
        loop {
            let read = self.rcnt.load();
            if !self.geometry.is_full(start, read) {
                return;
            }
            // One push may not be enough: an interrupted context may not have pushed yet.
            let _pushed = self.rcnt.compare_exchange(read, self.geometry.next(read));
        }
    }

    /// Takes the slot's memory for the writer, if no context has done so, and stores `to_memory`
    /// and `last` for the packet that begins at `start`.
    ///
    /// Every context that reserves in the slot calls this. The context that opened the packet may
    /// have been interrupted before the call, or before the two stores. All contexts store the same
    /// values.
    pub(super) fn hold(&self, slot: &Slot<P>, start: u64) {
        self.take(slot);
        slot.to_memory
            .store(self.geometry.distance(start, self.memory(slot)));
        slot.last
            .store(self.geometry.before(self.geometry.next(start)));
    }

    /// Writers' address of the first byte of the slot's memory, which is held.
    pub(super) fn memory(&self, slot: &Slot<P>) -> u64 {
        self.address(slot.reference().index())
    }

    fn take(&self, slot: &Slot<P>) {
        loop {
            let reference = slot.reference();
            if !reference.is_idle() {
                return;
            }
            // After the load of the reference: if the cmpxchg finds the reference unchanged,
            // `records` is of the same packet.
            let records = slot.packet_records.load();
            // W3: pairs with R2.
            if slot
                .reference
                .compare_exchange(reference.word(), reference.held().word())
            {
                if reference.is_packet() {
                    self.lost.count_overwritten(records);
                }
                return;
            }
        }
    }
}
