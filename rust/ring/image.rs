// SPDX-License-Identifier: GPL-2.0

//! A slot as it is found in memory that has outlived its writer: which bytes were committed.
//!
//! The machine stopped between any two instructions of the writer, whose stores reach memory in the
//! order of the program (that is what W1 needs, too). So:
//!
//! - While the reference is held the packet is not delivered. What is `left` of the lap says how much
//!   of it was committed; nothing left: all, and its header is complete.
//! - A reference to a packet is that of a delivered one: deliver writes it after the packet was
//!   complete, and before it sets `left` for the next lap.
//! - Otherwise nothing unread stands here.
//!
//! A record that a nested context committed while the one below it was being laid down is behind a hole.
//! The count of committed bytes does not say where that is: who reads the packet has to find out
//! whether the records fit what was committed.

use super::platform::Platform;
use super::reference::Reference;
use super::slot::Slot;
use core::mem::{offset_of, size_of};

/// State of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Image {
    /// No packet, or one that was read.
    Empty,
    /// A finished packet, in this memory sub-buffer.
    Finished {
        /// Index of the memory.
        memory: u64,
        /// Records in it.
        records: u64,
    },
    /// A packet that was being written, in this memory sub-buffer.
    Open {
        /// Index of the memory.
        memory: u64,
        /// Bytes committed, header included; fewer than the sub-buffer has.
        committed: u64,
        /// Records committed.
        records: u64,
    },
}

impl Image {
    /// Bytes of a slot.
    pub const SIZE: usize = 64;

    const LEFT: usize = 0;
    const RECORDS: usize = 8;
    const REFERENCE: usize = 32;
    const PACKET_RECORDS: usize = 48;
    const DELIVERED_RECORDS: usize = 56;

    /// Whether slots of this platform lie in memory as they are read here.
    pub const fn is_of<P: Platform>() -> bool {
        size_of::<Slot<P>>() == Self::SIZE
            && offset_of!(Slot<P>, left) == Self::LEFT
            && offset_of!(Slot<P>, records) == Self::RECORDS
            && offset_of!(Slot<P>, reference) == Self::REFERENCE
            && offset_of!(Slot<P>, packet_records) == Self::PACKET_RECORDS
            && offset_of!(Slot<P>, delivered_records) == Self::DELIVERED_RECORDS
    }

    /// Decodes the bytes of a slot, little endian, of a buffer whose sub-buffers have `size` bytes each and
    /// indexes up to `last`. [`None`]: no writer leaves a slot so.
    pub fn read(slot: &[u8; Self::SIZE], size: u64, last: u64) -> Option<Self> {
        let word = |at: usize| {
            let bytes = slot.get(at..)?.first_chunk()?;
            Some(u64::from_le_bytes(*bytes))
        };
        let reference = Reference::from_word(word(Self::REFERENCE)?);
        let memory = reference.index();
        let left = word(Self::LEFT)?;
        // The reader's sub-buffer may stand in any slot.
        if memory > last || left > size {
            return None;
        }
        let since_delivery = word(Self::RECORDS)?.wrapping_sub(word(Self::DELIVERED_RECORDS)?);
        Some(match (reference.is_idle(), reference.is_packet()) {
            (true, true) => Self::Finished {
                memory,
                records: word(Self::PACKET_RECORDS)?,
            },
            (true, false) => Self::Empty,
            (false, _) if left == 0 => Self::Finished {
                memory,
                // Deliver may have been at work already.
                records: since_delivery.max(word(Self::PACKET_RECORDS)?),
            },
            (false, _) => Self::Open {
                memory,
                committed: size - left,
                records: since_delivery,
            },
        })
    }
}
