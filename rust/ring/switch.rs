// SPDX-License-Identifier: GPL-2.0

//! Closing a packet before it is full: the paper's Algorithm 4 and SWITCHOLDSUBBUF.

use super::platform::{Local, Platform};
use super::reserve::Opened;
use super::slot::Slot;
use super::Ring;

/// A packet that was closed: the rest of its header must be written, then its padding
/// committed.
pub struct Closed<'a, P: Platform> {
    /// Where its header begins, in the buffer's memory.
    pub memory: u64,
    /// Bytes used, header included.
    pub content: u64,
    /// The time of the reservation that closed it.
    pub time: u64,
    /// Records discarded until then, since the ring was made.
    pub discarded: u64,
    pub(super) slot: &'a Slot<P>,
}

impl<'a, P: Platform> Closed<'a, P> {
    pub(super) fn new(
        memory: u64,
        content: u64,
        time: u64,
        discarded: u64,
        slot: &'a Slot<P>,
    ) -> Self {
        Self {
            memory,
            content,
            time,
            discarded,
            slot,
        }
    }
}

impl<P: Platform> Ring<P> {
    /// Closes the packet being written, if there is one (Algorithm 4). It then holds at least
    /// one record.
    ///
    /// The next packet is not opened: that is for the next record, so an idle buffer stays
    /// empty however often it is switched.
    ///
    /// Context: the buffer's CPU, preemption disabled; any context, NMI included.
    #[must_use]
    pub fn switch(&self, now: impl Fn() -> u64) -> Option<Closed<'_, P>> {
        loop {
            let old = self.wcnt.load();
            if self.geometry.offset(old) == 0 {
                return None;
            }
            let time = now();
            let discarded = self.lost.discarded();
            if self.wcnt.compare_exchange(old, self.geometry.next(old)) {
                return self.close(old, time, discarded);
            }
        }
    }

    /// Opens and closes an empty packet if records were discarded since the last packet was
    /// closed, so that no loss stays untold at the end of a trace.
    ///
    /// Context: as [`switch`](Self::switch), and no record is written any more. Does nothing while
    /// the buffer is full: call again when the reader has made room.
    #[must_use]
    pub fn report_losses(&self, now: impl Fn() -> u64) -> Option<(Opened<'_, P>, Closed<'_, P>)> {
        let old = self.wcnt.load();
        let discarded = self.lost.discarded();
        if discarded == self.reported.load() || self.geometry.offset(old) != 0 {
            return None;
        }
        let slot = self.slot(old)?;
        self.may_open(old, slot).ok()?;
        let time = now();
        if !self.wcnt.compare_exchange(old, self.geometry.next(old)) {
            return None;
        }
        self.push_reader(old);
        self.hold(slot, old);
        self.reported.store(discarded);
        let memory = self.memory(slot);
        let opened = Opened {
            memory,
            sequence: self.geometry.sequence(self.origin, old),
            time,
            slot,
        };
        let closed = Closed::new(memory, self.header, time, discarded, slot);
        Some((opened, closed))
    }

    /// The packet that ends at `end`, which a successful cmpxchg has closed.
    pub(super) fn close(&self, end: u64, time: u64, discarded: u64) -> Option<Closed<'_, P>> {
        let slot = self.slot(end)?;
        // Its opener may be below us and not have got to it.
        self.hold(slot, self.geometry.start(end));
        self.reported.store(discarded);
        Some(Closed::new(
            self.memory(slot),
            self.geometry.offset(end),
            time,
            discarded,
            slot,
        ))
    }
}
