// SPDX-License-Identifier: GPL-2.0

//! Integers at any address.
//!
//! The kernel's target for Rust forbids the compiler accesses that are not aligned. So the compiler would access an
//! integer byte by byte. The processor can access it at once, as in the kernel's C code.

use crate::record::memory::UnalignedInteger;
use core::arch::asm;

/// Implements [`UnalignedInteger`] by one instruction: `$store` or `$load` with a register of width `$width`.
macro_rules! integers {
    ($($t:ty: $store:literal, $load:literal, $width:literal;)*) => { $(
        // SAFETY: An integer.
        unsafe impl UnalignedInteger for $t {
            const IS_COMPILED: bool = false;

            #[inline(always)]
            unsafe fn store(self, at: *mut u8) {
                // SAFETY: By the contract. The kernel lets the processor access normal memory at any address
                // (SCTLR_EL1.A is 0).
                unsafe {
                    asm!(
                        concat!($store, " {value:", $width, "}, [{at}]"),
                        value = in(reg) self,
                        at = in(reg) at,
                        options(nostack, preserves_flags),
                    );
                }
            }

            #[inline(always)]
            unsafe fn load(at: *const u8) -> Self {
                let value;
                // SAFETY: As for `store`.
                unsafe {
                    asm!(
                        concat!($load, " {value:", $width, "}, [{at}]"),
                        value = out(reg) value,
                        at = in(reg) at,
                        options(pure, readonly, nostack, preserves_flags),
                    );
                }
                value
            }
        }
    )* };
}

integers! {
    u16: "strh", "ldrh", "w";
    i16: "strh", "ldrh", "w";
    u32: "str", "ldr", "w";
    i32: "str", "ldr", "w";
    u64: "str", "ldr", "x";
    i64: "str", "ldr", "x";
}

// SAFETY: An integer. Each address of a byte is aligned.
unsafe impl UnalignedInteger for u8 {}
// SAFETY: As for `u8`.
unsafe impl UnalignedInteger for i8 {}
