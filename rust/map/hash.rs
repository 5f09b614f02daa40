// SPDX-License-Identifier: GPL-2.0

//! The hash of keys.

/// Returns a hash of the key, whose upper bits are well mixed.
#[inline(always)]
pub(super) fn hash(key: &[u64]) -> u64 {
    /// 2^64 divided by the golden ratio.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = 0_u64;
    for word in key {
        hash = (hash ^ word).wrapping_mul(FACTOR);
        hash ^= hash.wrapping_shr(32);
    }
    hash.wrapping_mul(FACTOR)
}
