// SPDX-License-Identifier: GPL-2.0

//! Committing what was written: the paper's Algorithm 3.

use super::platform::{Local, Platform, Shared};
use super::reference::Reference;
use super::reserve::{Opened, Pending, Reserved};
use super::slot::Slot;
use super::switch::Closed;
use super::Ring;

/// A packet all of whose bytes are committed. Whoever has this is the only one to deliver it.
#[must_use]
pub struct Complete<'a, P: Platform> {
    pub(super) slot: &'a Slot<P>,
}

impl<P: Platform> Ring<P> {
    /// Commits a record that is completely written. If that completes its packet, the packet
    /// must be [delivered](Self::deliver) at once.
    ///
    /// Context: that of the reservation.
    #[inline(always)]
    #[must_use]
    pub fn commit<'a>(&self, record: Reserved<'a, P>) -> Option<Complete<'a, P>> {
        self.commit_pending(record.pending())
    }

    /// The same of a record of which no more is known.
    #[inline(always)]
    #[must_use]
    pub fn commit_pending<'a>(&self, record: Pending<'a, P>) -> Option<Complete<'a, P>> {
        record.slot.records.increment();
        self.commit_bytes(record.slot, record.len)
    }

    /// Commits the header of an opened packet. Returns whether that finished it.
    #[must_use]
    pub fn commit_header(&self, opened: Opened<'_, P>) -> bool {
        self.deliver_if(self.commit_bytes(opened.slot, self.header))
    }

    /// Commits the padding of a closed packet, whose header must be complete. Returns whether
    /// that finished it; a packet without padding is finished by its last record.
    #[must_use]
    pub fn commit_padding(&self, closed: Closed<'_, P>) -> bool {
        let padding = self.geometry.size().wrapping_sub(closed.content);
        padding != 0 && self.deliver_if(self.commit_bytes(closed.slot, padding))
    }

    fn deliver_if(&self, complete: Option<Complete<'_, P>>) -> bool {
        complete.map(|complete| self.deliver(complete)).is_some()
    }

    #[inline(always)]
    pub(super) fn commit_bytes<'a>(
        &self,
        slot: &'a Slot<P>,
        bytes: u64,
    ) -> Option<Complete<'a, P>> {
        // Subtracting and learning that nothing is left is one step: of all the commits of a
        // lap, only one does (I2).
        slot.left.subtract(bytes).then_some(Complete { slot })
    }

    /// Hands a complete packet to the reader.
    ///
    /// Nobody else writes the slot here: the lap is complete, and the next one cannot begin
    /// before `commit_seq` is written (I3). The order is: header (the committers), reference,
    /// `commit_seq`.
    #[cold]
    pub fn deliver(&self, complete: Complete<'_, P>) {
        let Complete { slot } = complete;
        let records = slot.records.load();
        slot.packet_records
            .store(records.wrapping_sub(slot.delivered_records.load()));
        slot.delivered_records.store(records);
        let commit_seq = slot.commit_seq.load();
        let lap = self.geometry.lap_after(commit_seq);
        slot.reference
            .store(Reference::packet(slot.reference().index(), lap).word());
        // After the reference: who finds the slot in memory that outlived its writer sees by either
        // that the packet is complete (see `image`).
        slot.left.store(self.geometry.size());
        // W1: pairs with R1.
        self.platform.publish();
        slot.commit_seq
            .store(self.geometry.advance(commit_seq, self.geometry.size()));
    }
}
