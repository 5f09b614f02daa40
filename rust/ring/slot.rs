// SPDX-License-Identifier: GPL-2.0

//! A slot: one place in the order of sub-buffers, with its counters.

use super::geometry::Geometry;
use super::platform::{Local, Platform, Shared};
use super::reference::Reference;

/// The slots of a ring, one of which is the *open* one: the slot whose packet was last seen open
/// with its memory held. The next record finds that slot by one load.
pub trait Slots<P: Platform> {
    /// All slots, in order.
    fn all(&self) -> &[Slot<P>];
    /// The open slot; initially any slot.
    fn open(&self) -> &Slot<P>;
    /// Makes the slot with this index the open one. `index` is that of an existing slot. A nested
    /// context may leave an older slot open; then `wcnt` lies past that slot's `last`.
    fn set_open(&self, index: u64);
}

/// One place in the order of sub-buffers. A cache line.
#[repr(C, align(64))]
pub struct Slot<P: Platform> {
    /// Bytes of this lap that are not yet committed.
    pub(super) left: P::Local,
    /// Records committed here since the beginning.
    pub(super) records: P::Local,
    /// Last position of the packet. Valid while the reference is held.
    pub(super) last: P::Local,
    /// Distance from a position in the packet to its place in the buffer's memory, wrapping. Valid
    /// while the reference is held.
    pub(super) to_memory: P::Local,
    /// The memory that stands here: a [`Reference`].
    pub(super) reference: P::Shared,
    /// Number of bytes of all complete laps. The reader decides by it whether a packet is finished.
    pub(super) commit_seq: P::Shared,
    /// Records in the last finished packet.
    pub(super) packet_records: P::Local,
    /// `records` at the last delivery.
    pub(super) delivered_records: P::Local,
}

impl<P: Platform> Slot<P> {
    /// Makes the slot that begins with memory `index`, of a ring that begins at `origin`.
    pub fn new(geometry: &Geometry<P>, index: u64, origin: u64) -> Self {
        // The counters' top bits have no meaning (Figure 6). With an `origin` near its wrap, these
        // bits begin set, so that the counters wrap soon, too.
        let laps = geometry.committed_before(origin);
        let above = !(u64::MAX >> (64 - P::BITS) >> geometry.count().trailing_zeros());
        let committed = if origin == 0 {
            0
        } else {
            (laps | above) & (u64::MAX >> (64 - P::BITS))
        };
        Self {
            reference: P::Shared::new(Reference::idle(index).word()),
            left: P::Local::new(geometry.size()),
            records: P::Local::new(0),
            // No position of a first packet lies in the packet that ends here.
            last: P::Local::new(geometry.before(origin)),
            to_memory: P::Local::new(0),
            commit_seq: P::Shared::new(committed),
            packet_records: P::Local::new(0),
            delivered_records: P::Local::new(0),
        }
    }

    #[inline(always)]
    pub(super) fn reference(&self) -> Reference {
        Reference::from_word(self.reference.load())
    }
}
