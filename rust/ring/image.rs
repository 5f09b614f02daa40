// SPDX-License-Identifier: GPL-2.0

//! A slot in memory that has outlived its writer. It says which bytes were committed.
//!
//! The machine may have stopped between any two instructions of the writer. The writer's stores reach
//! memory in program order, which W1 needs, too. So:
//!
//! - While the reference is held, the packet is not delivered. `left` says how many bytes of the
//!   lap are not committed. If it is 0, all bytes are committed and the header is complete.
//! - A reference with a packet means that the packet is delivered. `deliver` stores it after the
//!   packet is complete, and before it sets `left` for the next lap.
//! - Otherwise the slot has no unread packet.
//!
//! A nested context may have committed a record after one that was not yet written completely. The
//! count of committed bytes does not say where that hole is. A reader of the packet must check
//! whether the records match the committed bytes.

use super::platform::Platform;
use super::reference::Reference;
use super::slot::Slot;
use core::mem::{offset_of, size_of};

/// State of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Image {
    /// No packet, or a packet that was read.
    Empty,
    /// A finished packet, in memory sub-buffer `memory`.
    Finished {
        /// Index of the memory.
        memory: u64,
        /// Number of records in the packet.
        records: u64,
    },
    /// A packet that was being written, in memory sub-buffer `memory`.
    Open {
        /// Index of the memory.
        memory: u64,
        /// Bytes committed, header included; fewer than a sub-buffer has.
        committed: u64,
        /// Number of records committed.
        records: u64,
    },
}

impl Image {
    /// Size of a slot in bytes.
    pub const SIZE: usize = 64;

    const LEFT: usize = 0;
    const RECORDS: usize = 8;
    const REFERENCE: usize = 32;
    const PACKET_RECORDS: usize = 48;
    const DELIVERED_RECORDS: usize = 56;

    /// Returns whether slots of this platform have the layout that this file reads.
    pub const fn is_of<P: Platform>() -> bool {
        size_of::<Slot<P>>() == Self::SIZE
            && offset_of!(Slot<P>, left) == Self::LEFT
            && offset_of!(Slot<P>, records) == Self::RECORDS
            && offset_of!(Slot<P>, reference) == Self::REFERENCE
            && offset_of!(Slot<P>, packet_records) == Self::PACKET_RECORDS
            && offset_of!(Slot<P>, delivered_records) == Self::DELIVERED_RECORDS
    }

    /// Decodes the bytes of a slot, little endian. The buffer's sub-buffers have `size` bytes each,
    /// and indexes up to `last`. [`None`]: no writer leaves such a slot.
    pub fn read(slot: &[u8; Self::SIZE], size: u64, last: u64) -> Option<Self> {
        let word = |at: usize| {
            let bytes = slot.get(at..)?.first_chunk()?;
            Some(u64::from_le_bytes(*bytes))
        };
        let reference = Reference::from_word(word(Self::REFERENCE)?);
        let memory = reference.index();
        let left = word(Self::LEFT)?;
        // The reader's sub-buffer may be in any slot.
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
                // `deliver` may have stored this count already.
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
