// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A processor or C library without a restartable sequence.

use super::Rings;

/// See `x86_64.rs`.
pub(super) fn area() -> Option<(i64, i64)> {
    None
}

/// See `x86_64.rs`.
pub(super) fn index(_: i64) -> u32 {
    0
}

/// See `x86_64.rs`.
///
/// # Safety
///
/// None is needed.
pub(super) unsafe fn attempt(_: &Rings, _: *const u8, _: u64, _: u64) -> u32 {
    3
}
