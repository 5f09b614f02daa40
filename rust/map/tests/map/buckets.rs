// SPDX-License-Identifier: GPL-2.0

//! The buckets of histograms.

use super::map::bucket::{last, last_signed, of, of_signed};
#[cfg(not(fault))]
use proptest::prelude::*;

#[cfg_attr(not(fault), test)]
pub fn small_numbers_have_a_bucket_each() {
    for number in 0..16 {
        assert_eq!((of(number), last(number)), (number, number));
    }
    assert_eq!((of(16), of(17), of(18)), (16, 16, 18));
    assert_eq!((last(16), last(18)), (17, 19));
    assert_eq!((of(100), last(96)), (96, 103));
    assert_eq!((of(u64::MAX), last(of(u64::MAX))), (0xf << 60, u64::MAX));
}

#[cfg_attr(not(fault), test)]
pub fn negative_numbers_have_the_mirrored_buckets() {
    assert_eq!(of_signed(-1_i64 as u64) as i64, -1);
    assert_eq!(of_signed(-100_i64 as u64) as i64, -96);
    assert_eq!(last_signed(-96_i64 as u64) as i64, -103);
    assert_eq!(of_signed(i64::MIN as u64) as i64, i64::MIN);
    assert_eq!((of_signed(100), last_signed(96)), (96, 103));
}

#[cfg(not(fault))]
proptest! {
    /// A number is in its bucket, and the bucket is at most 1/8 as wide as its first number.
    #[test]
    fn constant_relative_width(number: u64, shift in 0_u32..64) {
        let number = number >> shift;
        let (first, last) = (of(number), last(of(number)));
        prop_assert!((first..=last).contains(&number));
        prop_assert!(last - first <= first / 8);
        prop_assert_eq!((of(first), of(last)), (first, first));
        if let Some(next) = last.checked_add(1) {
            prop_assert_eq!(of(next), next);
        }
    }
}
