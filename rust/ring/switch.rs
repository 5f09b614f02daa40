// SPDX-License-Identifier: GPL-2.0

//! Closing a packet before it is full: the paper's Algorithm 4 and SWITCHOLDSUBBUF.

use super::platform::{Local, Platform};
use super::reserve::Opened;
use super::slot::Slot;
use super::Ring;

/// A closed packet. The caller must write the rest of the header, then commit the padding.
pub struct Closed<'a, P: Platform> {
    /// Address of the header in the buffer's memory.
    pub memory: u64,
    /// Bytes used, header included.
    pub content: u64,
    /// Time of the reservation that closed the packet.
    pub time: u64,
    /// Number of records discarded from the ring's creation until then.
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
    /// Closes the packet being written, if there is one (Algorithm 4). A packet closed here holds
    /// at least one record.
    ///
    /// The next packet is not opened; the next record opens it. So an idle buffer stays empty,
    /// however often it is switched.
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

    /// Opens and closes an empty packet if records were discarded since the last packet was closed.
    /// So the end of a trace reports every loss.
    ///
    /// Does nothing while the buffer is full: call again when the reader has made room.
    ///
    /// Context: as [`switch`](Self::switch), after the last record was written.
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

    /// Returns the packet that ends at `end`, which a successful cmpxchg has closed.
    pub(super) fn close(&self, end: u64, time: u64, discarded: u64) -> Option<Closed<'_, P>> {
        let slot = self.slot(end)?;
        // The context that opened the packet may be interrupted by this one, before its own `hold`.
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
