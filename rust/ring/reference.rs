// SPDX-License-Identifier: GPL-2.0

//! The reference of a slot: one word that holds the index of the slot's memory and its state.
//!
//! ```text
//!   63          33  32     31     30 ............ 0
//!   +-------------+------+--------+----------------+
//!   |     tag     | IDLE | PACKET | memory index   |
//!   +-------------+------+--------+----------------+
//! ```
//!
//! The tag is the packet's lap. If the writer has completed a lap since the reader looked, the tag
//! differs and the reader's exchange fails. The tag has 31 bits. The exchange succeeds wrongly only
//! if the reader sleeps between two instructions for exactly 2^31 laps.

/// Set while no writer uses the memory. The reader exchanges only references with this bit set.
pub const IDLE: u64 = 1 << 32;
/// Set while the memory holds a finished, unread packet.
pub const PACKET: u64 = 1 << 31;

const INDEX: u64 = PACKET - 1;
const TAG_SHIFT: u32 = 33;

/// The value of a slot's reference word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference(u64);

impl Reference {
    /// Memory `index`, empty and not used by a writer.
    pub const fn idle(index: u64) -> Self {
        Self((index & INDEX) | IDLE)
    }

    /// Memory `index`, with the finished packet of `lap`.
    pub const fn packet(index: u64, lap: u64) -> Self {
        Self((index & INDEX) | IDLE | PACKET | (lap << TAG_SHIFT))
    }

    /// The reference that `word` encodes.
    #[inline(always)]
    pub(super) const fn from_word(word: u64) -> Self {
        Self(word)
    }

    /// The reference as a word.
    #[inline(always)]
    pub(super) const fn word(self) -> u64 {
        self.0
    }

    /// The same memory, held by the writer.
    pub(super) const fn held(self) -> Self {
        Self(self.0 & INDEX)
    }

    /// Whether no writer uses the memory.
    #[inline(always)]
    pub const fn is_idle(self) -> bool {
        self.0 & IDLE != 0
    }

    /// Whether the memory holds an unread packet.
    pub const fn is_packet(self) -> bool {
        self.0 & PACKET != 0
    }

    /// Index of the memory.
    #[inline(always)]
    pub const fn index(self) -> u64 {
        self.0 & INDEX
    }
}
