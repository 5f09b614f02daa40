// SPDX-License-Identifier: GPL-2.0

//! Committing what was written: the paper's Algorithm 3.

use super::platform::{Local, Platform, Shared};
use super::reference::Reference;
use super::reserve::{Opened, Pending, Reserved};
use super::slot::Slot;
use super::switch::Closed;
use super::Ring;

/// A packet whose bytes are all committed. Only the owner of this value delivers the packet.
#[must_use]
pub struct Complete<'a, P: Platform> {
    pub(super) slot: &'a Slot<P>,
}

impl<P: Platform> Ring<P> {
    /// Commits a completely written record. If this completes the packet, the caller must
    /// [deliver](Self::deliver) it at once.
    ///
    /// Context: that of the reservation.
    #[inline(always)]
    #[must_use]
    pub fn commit<'a>(&self, record: Reserved<'a, P>) -> Option<Complete<'a, P>> {
        self.commit_pending(record.pending())
    }

    /// Like [`commit`](Self::commit), for a record of which only the [`Pending`] part is left.
    #[inline(always)]
    #[must_use]
    pub fn commit_pending<'a>(&self, record: Pending<'a, P>) -> Option<Complete<'a, P>> {
        record.slot.records.increment();
        self.commit_bytes(record.slot, record.len)
    }

    /// Commits the header of an opened packet. Returns whether that finished the packet.
    #[must_use]
    pub fn commit_header(&self, opened: Opened<'_, P>) -> bool {
        self.deliver_if(self.commit_bytes(opened.slot, self.header))
    }

    /// Commits the padding of a closed packet, whose header must be complete. Returns whether that
    /// finished the packet. A packet without padding is finished by its last record.
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
        // One instruction subtracts and tests for 0. So exactly one commit of a lap finds 0 (I2).
        slot.left.subtract(bytes).then_some(Complete { slot })
    }

    /// Hands a complete packet to the reader.
    ///
    /// No other context writes the slot here. The lap is complete, and the next one cannot begin
    /// before `commit_seq` is stored (I3). The order is: header (by the committers), reference,
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
        // After the reference, for an image that a crash leaves: either the reference or `left`
        // says that the packet is complete (see `image`).
        slot.left.store(self.geometry.size());
        // W1: pairs with R1.
        self.platform.publish();
        slot.commit_seq
            .store(self.geometry.advance(commit_seq, self.geometry.size()));
    }
}
