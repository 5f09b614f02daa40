// SPDX-License-Identifier: GPL-2.0

//! Reserving space for a record: the paper's Algorithms 1 and 2, and PUSHREADER.

use super::lost::Lost;
use super::platform::{Local, Platform, Shared};
use super::slot::{Slot, Slots};
use super::switch::Closed;
use super::{Mode, Ring};

/// Space for a record, the caller's until it commits it.
pub struct Reserved<'a, P: Platform> {
    /// Where, in the buffer's memory.
    pub memory: u64,
    /// Bytes.
    pub len: u64,
    /// The time of the reservation: not before that of any earlier one.
    pub time: u64,
    pub(super) slot: &'a Slot<P>,
}

/// The same without what was needed to lay the record down: what its commit needs.
pub struct Pending<'a, P: Platform> {
    pub(super) len: u64,
    pub(super) slot: &'a Slot<P>,
}

impl<'a, P: Platform> Reserved<'a, P> {
    /// What is left of it once it is known where the record goes.
    #[inline(always)]
    pub fn pending(self) -> Pending<'a, P> {
        let Self { len, slot, .. } = self;
        Pending { len, slot }
    }
}

/// A packet that a reservation opened: its header must be written, then committed.
pub struct Opened<'a, P: Platform> {
    /// Where the header begins, in the buffer's memory.
    pub memory: u64,
    /// The packet's number, from 0.
    pub sequence: u64,
    /// The time of the reservation.
    pub time: u64,
    pub(super) slot: &'a Slot<P>,
}

/// What a reservation that may switch sub-buffers gives.
///
/// To be acted on in this order: write and commit `closed` and `opened`, write `filled`, then
/// write and commit the record.
pub struct Switched<'a, P: Platform> {
    /// The packet that the reservation closed.
    pub closed: Option<Closed<'a, P>>,
    /// The packet that it opened.
    pub opened: Option<Opened<'a, P>>,
    /// The packet that the record fills to the last byte. It has no padding: the record's
    /// commit completes it.
    pub filled: Option<Closed<'a, P>>,
    /// The record's space.
    pub record: Reserved<'a, P>,
}

/// What one pass through the reserve loop came to.
enum Attempt<'a, P: Platform> {
    Done(Switched<'a, P>),
    /// A nested context moved `wcnt`: look again.
    Raced,
    Lost(Lost),
}

/// The time of a reservation, and the record's size at that time.
#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    /// What the clock said.
    pub time: u64,
    /// Bytes, header included; not 0, and less than 2^32.
    pub len: u64,
}

impl<P: Platform> Ring<P> {
    /// One attempt at the common case: the record, of `len` bytes, fits into the open packet and
    /// leaves room.
    ///
    /// `now` reads the clock; it may answer [`None`] to give up. [`None`] from here says nothing:
    /// call [`reserve`](Self::reserve), which goes through all the cases.
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
        // Inside the cmpxchg's window, so that times grow with positions (Algorithm 2).
        let time = now()?;
        if !self.wcnt.compare_exchange(old, new) {
            return None;
        }
        Some(Reserved {
            // The slot's notes were of this packet when `last` was read, and still are: it is not
            // complete before this record is, and what is held stays so until then (I2).
            memory: self.geometry.advance(old, slot.to_memory.load()),
            len,
            time,
            slot,
        })
    }

    /// Refuses a record of `len` bytes and counts it, if the buffer is full and the record does
    /// not fit into what is left of the open packet: the cheap way to lose a record.
    ///
    /// Context: as [`reserve_open`](Self::reserve_open).
    #[inline(always)]
    pub fn refuse_if_full(&self, len: u64) -> bool {
        let old = self.wcnt.load();
        let room = self.geometry.room(old);
        // `rcnt` lies where a sub-buffer begins, too.
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
    /// `stamp` reads the clock and says how large the record is at that time; it may be called
    /// several times. On `Err` nothing was reserved and the loss is counted.
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
        // First, so that a record that never fits is not said to find the buffer full.
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
                // What was read may belong to different moments: only if no nested context
                // reserved meanwhile is it the truth.
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

    /// Whether the sub-buffer that begins at `start` may be written.
    pub(super) fn may_open(&self, start: u64, slot: &Slot<P>) -> Result<(), Lost> {
        if !self
            .geometry
            .is_fully_committed(start, slot.commit_seq.load())
        {
            return Err(Lost::Wrapped);
        }
        // W2: pairs with R3. The writes that follow into memory that the reader gave back stay
        // after this; the control dependency alone would not order plain stores.
        if self.mode == Mode::Discard && self.geometry.is_full(start, self.rcnt.load_acquire()) {
            return Err(Lost::Full);
        }
        Ok(())
    }

    /// Overwrite mode: moves `rcnt` on until there is room for the sub-buffer at `start`
    /// (PUSHREADER). The test is made again each time: the reader may put meanwhile.
    ///
    /// `start - rcnt` is never negative: the caller's sub-buffer is not committed, so neither
    /// the reader nor a nested writer gets past it (I3).
    pub(super) fn push_reader(&self, start: u64) {
        loop {
            let read = self.rcnt.load();
            if !self.geometry.is_full(start, read) {
                return;
            }
            // Once may not be enough: a context below may not have pushed yet.
            let _pushed = self.rcnt.compare_exchange(read, self.geometry.next(read));
        }
    }

    /// Makes the slot's memory the writer's, if it is not already, and notes where it is and which
    /// packet, the one that begins at `start`, goes there.
    ///
    /// Any context that has reserved in the slot may be the one to do it: the one that opened
    /// it may have been interrupted before it got here, or before it got to the notes. All of
    /// them note the same.
    pub(super) fn hold(&self, slot: &Slot<P>, start: u64) {
        self.take(slot);
        slot.to_memory
            .store(self.geometry.distance(start, self.memory(slot)));
        slot.last
            .store(self.geometry.before(self.geometry.next(start)));
    }

    /// What writers call the first byte of the slot's memory, which is held.
    pub(super) fn memory(&self, slot: &Slot<P>) -> u64 {
        self.address(slot.reference().index())
    }

    fn take(&self, slot: &Slot<P>) {
        loop {
            let reference = slot.reference();
            if !reference.is_idle() {
                return;
            }
            // After the reference: if that is still the same below, so is this.
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
