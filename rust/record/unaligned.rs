// SPDX-License-Identifier: GPL-2.0

//! Loads and stores of integers at addresses that are not aligned.
//!
//! The target of the kernel for arm64 forbids the compiler unaligned accesses. So it accesses an integer byte by byte,
//! although the processor can access it at once, which the kernel's C code uses. There this file has the instructions.

#[cfg(target_arch = "aarch64")]
use core::arch::asm;

/// Whether a value of several integers is written one integer after the other.
pub(super) const BY_PARTS: bool = cfg!(target_arch = "aarch64");

/// Writes an integer, at any address.
///
/// # Safety
///
/// `at` is valid for writes of the integer's bytes. `T` is an integer of at most 64 bits.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(super) unsafe fn store<T: Copy>(value: T, at: *mut u8) {
    // SAFETY: By the contract. The kernel lets the processor access normal memory at any address (SCTLR_EL1.A is 0).
    // Each copy of bits has the size that the arm tests.
    unsafe {
        match size_of::<T>() {
            2 => {
                let value: u16 = core::mem::transmute_copy(&value);
                asm!("strh {v:w}, [{at}]", v = in(reg) value, at = in(reg) at, options(nostack, preserves_flags));
            }
            4 => {
                let value: u32 = core::mem::transmute_copy(&value);
                asm!("str {v:w}, [{at}]", v = in(reg) value, at = in(reg) at, options(nostack, preserves_flags));
            }
            8 => {
                let value: u64 = core::mem::transmute_copy(&value);
                asm!("str {v}, [{at}]", v = in(reg) value, at = in(reg) at, options(nostack, preserves_flags));
            }
            _ => at.cast::<T>().write_unaligned(value),
        }
    }
}

/// Writes an integer, at any address.
///
/// # Safety
///
/// `at` is valid for writes of the integer's bytes.
#[cfg(not(target_arch = "aarch64"))]
#[inline(always)]
pub(super) unsafe fn store<T: Copy>(value: T, at: *mut u8) {
    // SAFETY: By the contract.
    unsafe { at.cast::<T>().write_unaligned(value) };
}

/// Reads an integer, at any address.
///
/// # Safety
///
/// `at` is valid for reads of the integer's bytes. `T` is an integer of at most 64 bits.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(super) unsafe fn load<T: Copy>(at: *const u8) -> T {
    // SAFETY: As for `store`.
    unsafe {
        match size_of::<T>() {
            2 => {
                let value: u16;
                asm!("ldrh {v:w}, [{at}]", v = out(reg) value, at = in(reg) at,
                    options(pure, readonly, nostack, preserves_flags));
                core::mem::transmute_copy(&value)
            }
            4 => {
                let value: u32;
                asm!("ldr {v:w}, [{at}]", v = out(reg) value, at = in(reg) at,
                    options(pure, readonly, nostack, preserves_flags));
                core::mem::transmute_copy(&value)
            }
            8 => {
                let value: u64;
                asm!("ldr {v}, [{at}]", v = out(reg) value, at = in(reg) at,
                    options(pure, readonly, nostack, preserves_flags));
                core::mem::transmute_copy(&value)
            }
            _ => at.cast::<T>().read_unaligned(),
        }
    }
}

/// Reads an integer, at any address.
///
/// # Safety
///
/// `at` is valid for reads of the integer's bytes.
#[cfg(not(target_arch = "aarch64"))]
#[inline(always)]
pub(super) unsafe fn load<T: Copy>(at: *const u8) -> T {
    // SAFETY: By the contract.
    unsafe { at.cast::<T>().read_unaligned() }
}
