// SPDX-License-Identifier: GPL-2.0

//! A slot: one place in the order of sub-buffers, with its counters.

use super::geometry::Geometry;
use super::platform::{Local, Platform, Shared};
use super::reference::Reference;

/// The slots of a ring; and of them the *open* one, where the last packet was seen open with its
/// memory held, so that the next record finds it by one load.
pub trait Slots<P: Platform> {
    /// All, in order.
    fn all(&self) -> &[Slot<P>];
    /// The open one; to begin with, any.
    fn open(&self) -> &Slot<P>;
    /// Makes the one with this index the open one; it is that of a slot. A nested context may
    /// leave an older one: then `wcnt` lies past its `last`.
    fn set_open(&self, index: u64);
}

/// One place in the order of sub-buffers. A cache line.
#[repr(C, align(64))]
pub struct Slot<P: Platform> {
    /// Bytes of this lap that are not committed yet.
    pub(super) left: P::Local,
    /// Records committed here since the beginning.
    pub(super) records: P::Local,
    /// While the reference is held: the last position of the packet.
    pub(super) last: P::Local,
    /// While the reference is held: from a position in the packet to its place in the buffer's
    /// memory, wrapping.
    pub(super) to_memory: P::Local,
    /// Which memory stands here: a [`Reference`].
    pub(super) reference: P::Shared,
    /// Bytes of all complete laps: what the reader goes by.
    pub(super) commit_seq: P::Shared,
    /// Records in the last finished packet.
    pub(super) packet_records: P::Local,
    /// `records` at the last delivery.
    pub(super) delivered_records: P::Local,
}

impl<P: Platform> Slot<P> {
    /// The slot that begins with memory `index`, of a ring that begins at `origin`.
    pub fn new(geometry: &Geometry<P>, index: u64, origin: u64) -> Self {
        // The counters' top bits mean nothing (Figure 6); beginning with them set where
        // the origin is near its wrap makes the counters wrap soon, too.
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
            // No position of a first packet has room before this.
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
