// SPDX-License-Identifier: GPL-2.0

//! Buckets of a histogram: of constant relative width, so that one histogram serves nanoseconds and
//! hours.
//!
//! A bucket is named by its number nearest to 0. Numbers below 16 have a bucket each. Above, each
//! power of two has eight buckets of the same width, so that a bucket is at most 1/8 as wide as its
//! smallest number. Negative numbers have the mirrored buckets.

/// Number of bits below the highest bit that distinguish buckets.
const FINE_BITS: u32 = 3;

/// Returns the bucket of an unsigned number.
#[inline(always)]
pub fn of(number: u64) -> u64 {
    let bits = u64::BITS.wrapping_sub(number.leading_zeros());
    let lower = bits.saturating_sub(FINE_BITS + 1);
    number & u64::MAX.wrapping_shl(lower)
}

/// Returns the bucket of a signed number, in two's complement.
#[inline(always)]
pub fn of_signed(number: u64) -> u64 {
    if (number as i64) < 0 {
        of(number.wrapping_neg()).wrapping_neg()
    } else {
        of(number)
    }
}

/// Returns the number of the bucket that is farthest from 0, for an unsigned bucket.
pub fn last(bucket: u64) -> u64 {
    let lower = (u64::BITS - bucket.leading_zeros()).saturating_sub(FINE_BITS + 1);
    bucket | !u64::MAX.wrapping_shl(lower)
}

/// As [`last`], for a signed bucket.
pub fn last_signed(bucket: u64) -> u64 {
    if (bucket as i64) < 0 {
        last(bucket.wrapping_neg()).wrapping_neg()
    } else {
        last(bucket)
    }
}
