// SPDX-License-Identifier: GPL-2.0

//! Sizes of a buffer, and the paper's equations on its positions (section 4.2).
//!
//! The paper writes M(x) from bit m to n for "x with only the bits m to n-1 kept". All arithmetic
//! is modulo 2^[`BITS`](Platform::BITS).

use super::platform::Platform;
use core::marker::PhantomData;

/// Size and number of sub-buffers.
///
/// # Invariants
///
/// - `size` and `count` are powers of two, `count >= 2`.
/// - `size_bits + count_bits < P::BITS`, so at least one bit of a position counts laps.
pub struct Geometry<P: Platform> {
    /// Bytes in a sub-buffer, minus 1.
    size_mask: u64,
    /// Number of sub-buffers, minus 1.
    count_mask: u64,
    /// Bytes in all sub-buffers.
    buffer_size: u64,
    size_bits: u32,
    count_bits: u32,
    platform: PhantomData<fn(P)>,
}

impl<P: Platform> Clone for Geometry<P> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<P: Platform> Copy for Geometry<P> {}

impl<P: Platform> Geometry<P> {
    /// A word with all bits of a position set.
    const WORD: u64 = u64::MAX >> (64 - P::BITS);

    /// Checks the sizes. Both must be powers of two, and there must be at least two sub-buffers.
    /// The buffer, without the reader's sub-buffer, may have at most half of the range of a
    /// position.
    pub fn new(size: u64, count: u64) -> Option<Self> {
        if !size.is_power_of_two() || !count.is_power_of_two() || count < 2 {
            return None;
        }
        let (size_bits, count_bits) = (size.trailing_zeros(), count.trailing_zeros());
        if size_bits + count_bits >= P::BITS {
            return None;
        }
        Some(Self {
            size_mask: size - 1,
            count_mask: count - 1,
            buffer_size: size << count_bits,
            size_bits,
            count_bits,
            platform: PhantomData,
        })
    }

    /// Bytes in a sub-buffer.
    #[inline(always)]
    pub fn size(&self) -> u64 {
        self.size_mask.wrapping_add(1)
    }

    /// Number of sub-buffers that writers use; the reader has one more.
    #[inline(always)]
    pub fn count(&self) -> u64 {
        self.count_mask.wrapping_add(1)
    }

    /// Bytes in all the sub-buffers that writers use.
    #[inline(always)]
    pub fn buffer_size(&self) -> u64 {
        self.buffer_size
    }

    /// `position + bytes`, wrapping.
    #[inline(always)]
    pub(super) fn advance(&self, position: u64, bytes: u64) -> u64 {
        position.wrapping_add(bytes) & Self::WORD
    }

    /// Offset of the position in its sub-buffer.
    #[inline(always)]
    pub fn offset(&self, position: u64) -> u64 {
        position & self.size_mask
    }

    /// Bytes from one position to a later one.
    #[inline(always)]
    pub(super) fn distance(&self, from: u64, to: u64) -> u64 {
        to.wrapping_sub(from) & Self::WORD
    }

    /// The position one byte before.
    #[inline(always)]
    pub(super) fn before(&self, position: u64) -> u64 {
        self.advance(position, u64::MAX)
    }

    /// Whether `position` lies in the packet whose last position is `last`.
    #[inline(always)]
    pub(super) fn lies_in_packet(&self, position: u64, last: u64) -> bool {
        self.distance(position, last) <= self.size_mask
    }

    /// Bytes from `position` to the end of the sub-buffer; 0 at the first byte of one.
    #[inline(always)]
    pub(super) fn room(&self, position: u64) -> u64 {
        position.wrapping_neg() & self.size_mask
    }

    /// Offset of the position in the buffer.
    #[inline(always)]
    pub fn buffer_offset(&self, position: u64) -> u64 {
        position & self.buffer_size.wrapping_sub(1)
    }

    /// First position of the sub-buffer.
    #[inline(always)]
    pub fn start(&self, position: u64) -> u64 {
        position & !self.size_mask
    }

    /// First position of the next sub-buffer.
    #[inline(always)]
    pub(super) fn next(&self, position: u64) -> u64 {
        self.advance(self.start(position), self.size())
    }

    /// Index of the slot in which the position lies.
    #[inline(always)]
    pub fn index(&self, position: u64) -> u64 {
        position.wrapping_shr(self.size_bits) & self.count_mask
    }

    /// Sum of the indexes of a bank's sub-buffers, the reader's included. `first` is the bank's
    /// first index.
    pub(super) fn sum_of_indexes(&self, first: u64) -> u64 {
        let last = self.count();
        // 0 + 1 + ... + last, which is even.
        let from_zero = (last / 2).wrapping_mul(last.wrapping_add(1));
        first
            .wrapping_mul(last.wrapping_add(1))
            .wrapping_add(from_zero)
    }

    /// Number of times that the writer went through the whole buffer before this position.
    #[inline(always)]
    pub fn lap(&self, position: u64) -> u64 {
        position >> self.size_bits >> self.count_bits
    }

    /// Number of sub-buffers from position `origin` to `position`.
    pub fn sequence(&self, origin: u64, position: u64) -> u64 {
        self.distance(origin, position) >> self.size_bits
    }

    /// Offset in the buffer's memory of the first byte of memory sub-buffer `index`.
    #[inline(always)]
    pub fn memory(&self, index: u64) -> u64 {
        index.wrapping_shl(self.size_bits)
    }

    /// The lap after the complete laps of a slot, given its `commit_seq`.
    #[inline(always)]
    pub(super) fn lap_after(&self, commit_seq: u64) -> u64 {
        self.cut(commit_seq) >> self.size_bits
    }

    /// Value of a slot's commit counters when all laps before that of `position` are complete: the
    /// left side of equations (2) and (3). The counters have more bits than a lap, so both sides
    /// are cut to the bits of a lap (Figure 6).
    #[inline(always)]
    pub(super) fn committed_before(&self, position: u64) -> u64 {
        self.lap(position) << self.size_bits
    }

    #[inline(always)]
    fn cut(&self, commit: u64) -> u64 {
        commit & (Self::WORD >> self.count_bits)
    }

    /// Equation (1): with `rcnt` at `read`, no sub-buffer is free for one that begins at `write`.
    #[inline(always)]
    pub fn is_full(&self, write: u64, read: u64) -> bool {
        self.distance(self.start(read), self.start(write)) >= self.buffer_size()
    }

    /// Equation (2): the packet at `read` is finished, given its slot's `commit_seq`.
    #[inline(always)]
    pub fn is_ready(&self, read: u64, commit_seq: u64) -> bool {
        self.committed_before(read) == self.cut(commit_seq.wrapping_sub(self.size()))
    }

    /// Equation (3): every lap before that of `write` is complete in its slot, given the
    /// slot's `commit_seq`.
    #[inline(always)]
    pub fn is_fully_committed(&self, write: u64, commit_seq: u64) -> bool {
        self.committed_before(write) == self.cut(commit_seq)
    }

    /// Equation (4): the sub-buffer at `read` is the one being written.
    #[inline(always)]
    pub fn is_being_written(&self, write: u64, read: u64) -> bool {
        self.start(write) == self.start(read)
    }
}
