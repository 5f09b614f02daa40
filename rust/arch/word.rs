// SPDX-License-Identifier: GPL-2.0

//! Words for per-CPU data and for data shared between CPUs. The processor's `word.rs` has the other operations, each
//! one instruction or a few.
//!
//! An `asm!` block without `nomem` is a compiler barrier, which both kinds of cmpxchg rely on. In this kernel each
//! operation of `kernel::sync::atomic` is an out-of-line call, so it is not used here.

use super::processor;
use core::arch::asm;
use core::cell::UnsafeCell;

pub use processor::word::{acquire_barrier, full_barrier, read_word, release_barrier, IS_ORDERED};

/// A word written by one CPU, in any of its contexts, and read by all.
#[repr(transparent)]
pub struct LocalWord(pub(super) UnsafeCell<u64>);

// SAFETY: All access is by single instructions on an aligned word, or volatile. Other CPUs may miss a change, or see it
// late. Callers must allow for that; it never affects memory safety.
unsafe impl Sync for LocalWord {}
// SAFETY: A plain word.
unsafe impl Send for LocalWord {}

impl LocalWord {
    /// Makes a word with this value.
    #[inline(always)]
    pub const fn new(value: u64) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Returns the value. Any CPU.
    #[inline(always)]
    pub fn load(&self) -> u64 {
        // SAFETY: The word is valid and aligned; volatile makes it one access.
        unsafe { self.0.get().read_volatile() }
    }

    /// Sets the value. No context that interrupts the caller may write the word.
    #[inline(always)]
    pub fn store(&self, value: u64) {
        // SAFETY: As above.
        unsafe { self.0.get().write_volatile(value) }
    }

    /// Returns whether the word, as a signed number, is negative.
    #[inline(always)]
    pub fn is_negative(&self) -> bool {
        (self.load() as i64) < 0
    }
}

impl SharedWord {
    /// Adds `more`, wrapping. Any CPU, any context.
    pub fn add(&self, more: u64) {
        while {
            let old = self.load();
            !self.compare_exchange(old, old.wrapping_add(more))
        } {}
    }
}

/// A count that one CPU writes, and a number and a flag, each written on its own. Each context that interrupts the
/// writer restores the count before it returns. One instruction reads number and flag.
#[repr(C, align(16))]
pub struct CountAndFlags {
    pub(super) count: LocalWord,
    pub(super) number: UnsafeCell<u32>,
    flag: UnsafeCell<u32>,
}

// SAFETY: All access is by single instructions on aligned words, or volatile.
unsafe impl Sync for CountAndFlags {}
// SAFETY: Plain words.
unsafe impl Send for CountAndFlags {}

impl CountAndFlags {
    /// Makes a count with this value, number 0, and a clear flag.
    pub const fn new(count: u64) -> Self {
        Self {
            count: LocalWord::new(count),
            number: UnsafeCell::new(0),
            flag: UnsafeCell::new(0),
        }
    }

    /// Returns the count, a signed number.
    #[inline(always)]
    pub fn count(&self) -> &LocalWord {
        &self.count
    }

    /// Sets or clears the flag.
    #[inline(always)]
    pub fn set_flag(&self, set: bool) {
        // SAFETY: The word is valid and aligned; volatile makes it one access.
        unsafe { self.flag.get().write_volatile(set.into()) };
    }
}

/// A word written by several CPUs.
#[repr(transparent)]
pub struct SharedWord(pub(super) UnsafeCell<u64>);

// SAFETY: All access is by single instructions on an aligned word, atomic between CPUs.
unsafe impl Sync for SharedWord {}
// SAFETY: A plain word.
unsafe impl Send for SharedWord {}

impl SharedWord {
    /// Makes a word with this value.
    #[inline(always)]
    pub const fn new(value: u64) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Returns the value, relaxed (`READ_ONCE`).
    #[inline(always)]
    pub fn load(&self) -> u64 {
        // SAFETY: The word is valid and aligned; volatile makes it one access.
        unsafe { self.0.get().read_volatile() }
    }

    /// Returns the value by a plain load.
    ///
    /// # Safety
    ///
    /// The word is not written any more.
    #[inline(always)]
    pub unsafe fn load_settled(&self) -> u64 {
        // SAFETY: The word is valid and aligned; by the contract it is not written any more.
        unsafe { self.0.get().read() }
    }

    /// Sets the value, relaxed (`WRITE_ONCE`).
    #[inline(always)]
    pub fn store(&self, value: u64) {
        // SAFETY: As for `load`.
        unsafe { self.0.get().write_volatile(value) }
    }
}

/// Prevents the compiler from moving memory accesses across this call (`barrier()`).
#[inline(always)]
#[allow(dead_code)] // The module for arm64 does not call it.
pub fn compiler_barrier() {
    // SAFETY: No instruction. Without `nomem` the compiler must assume an access to memory.
    unsafe { asm!("", options(nostack, preserves_flags)) };
}

/// Returns `value`, and hides its origin from the compiler (`OPTIMIZER_HIDE_VAR()`).
#[inline(always)]
pub fn opaque(mut value: u64) -> u64 {
    // SAFETY: No instruction.
    unsafe {
        asm!(
            "/* {value} */",
            value = inout(reg) value,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    value
}
