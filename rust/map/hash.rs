// SPDX-License-Identifier: GPL-2.0

//! The hash of keys.

/// Returns a hash of the key, whose upper bits are well mixed.
#[inline(always)]
pub(super) fn hash(key: &[u64]) -> u64 {
    /// 2^64 divided by the golden ratio.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    // Each product mixes all bits of a word into its upper bits. The rotation brings these down for the next one.
    let step = |hash: u64, word: &u64| (hash.rotate_left(32) ^ word).wrapping_mul(FACTOR);
    key.iter().fold(0, step)
}
