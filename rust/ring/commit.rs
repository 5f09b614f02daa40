// SPDX-License-Identifier: GPL-2.0

//! Committing what was written: the paper's Algorithm 3.

use super::platform::{Local, Platform, Shared};
use super::reference::Reference;
use super::reserve::{Opened, Reserved};
use super::slot::Slot;
use super::switch::Closed;
use super::Ring;

impl<P: Platform> Ring<P> {
    /// Commits a record that is completely written. Returns whether that finished a packet.
    ///
    /// Context: that of the reservation.
    #[inline(always)]
    #[must_use]
    pub fn commit(&self, record: Reserved<'_, P>) -> bool {
        record.slot.records.add(1);
        self.commit_bytes(record.slot, record.position, record.len)
    }

    /// Commits the header of an opened packet. Returns whether that finished it.
    #[must_use]
    pub fn commit_header(&self, opened: Opened<'_, P>) -> bool {
        self.commit_bytes(opened.slot, opened.position, self.header)
    }

    /// Commits the padding of a closed packet, whose header must be complete. Returns whether
    /// that finished it; a packet without padding is finished by its last record.
    #[must_use]
    pub fn commit_padding(&self, closed: Closed<'_, P>) -> bool {
        let padding = self.geometry.size().wrapping_sub(closed.content);
        padding != 0 && self.commit_bytes(closed.slot, closed.position, padding)
    }

    #[inline(always)]
    fn commit_bytes(&self, slot: &Slot<P>, position: u64, bytes: u64) -> bool {
        // Adding and learning the sum is one step: of all the commits of a lap, only one
        // sees it complete (I2).
        let count = self
            .geometry
            .advance(slot.commit_count.fetch_add(bytes), bytes);
        if !self.geometry.completes_lap(count) {
            return false;
        }
        self.deliver(slot, position, count);
        true
    }

    /// Hands a complete packet to the reader.
    ///
    /// Nobody else writes the slot here: the lap is complete, and the next one cannot begin
    /// before `commit_seq` is written (I3). The order is: header (the committers), reference,
    /// `commit_seq`.
    #[cold]
    #[inline(never)]
    fn deliver(&self, slot: &Slot<P>, position: u64, count: u64) {
        let records = slot.records.load();
        slot.packet_records
            .store(records.wrapping_sub(slot.delivered_records.load()));
        slot.delivered_records.store(records);
        slot.reference
            .store(Reference::packet(slot.reference().index(), self.geometry.lap(position)).word());
        // W1: pairs with R1.
        self.platform.publish();
        slot.commit_seq.store(count);
    }
}
