// SPDX-License-Identifier: GPL-2.0

//! Integers at any address: the compiler accesses them at once.

use crate::record::memory::UnalignedInteger;

macro_rules! integers {
    ($($t:ty),*) => { $(
        // SAFETY: An integer.
        unsafe impl UnalignedInteger for $t {}
    )* };
}

integers!(u8, u16, u32, u64, i8, i16, i32, i64);
