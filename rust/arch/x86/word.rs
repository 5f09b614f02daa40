// SPDX-License-Identifier: GPL-2.0

//! Operations on words.
//!
//! Local operations are one instruction each, without a LOCK prefix. They are atomic for interrupts
//! and NMIs of the same CPU, but not for another CPU. Some blocks jump, to use the flags of the previous instruction
//! directly.

use super::super::word::{compiler_barrier, CountAndFlags, LocalWord, SharedWord};
use core::arch::asm;

impl LocalWord {
    /// Returns the value; later accesses stay after the load (`smp_load_acquire`). Any CPU.
    #[inline(always)]
    pub fn load_acquire(&self) -> u64 {
        let value = self.load();
        compiler_barrier();
        value
    }

    /// Sets the value; earlier accesses stay before the store (`smp_store_release`).
    #[inline(always)]
    pub fn store_release(&self, value: u64) {
        compiler_barrier();
        self.store(value);
    }

    /// Writes `new` if the value is `old`. Returns whether it did.
    #[inline(always)]
    pub fn compare_exchange(&self, old: u64, new: u64) -> bool {
        // SAFETY: The word is valid and aligned; the instructions access no other memory.
        unsafe {
            asm!(
                "cmpxchg qword ptr [{word}], {new}",
                "jne {failed}",
                word = in(reg) self.0.get(),
                new = in(reg) new,
                inout("rax") old => _,
                failed = label { return false },
                options(nostack),
            );
        }
        true
    }

    /// Subtracts `value`, wrapping. Returns whether 0 is left.
    #[inline(always)]
    pub fn subtract(&self, value: u64) -> bool {
        // SAFETY: As above.
        unsafe {
            asm!(
                "sub qword ptr [{word}], {value}",
                "jz {nothing}",
                word = in(reg) self.0.get(),
                value = in(reg) value,
                nothing = label { return true },
                options(nostack),
            );
        }
        false
    }

    /// Adds 1, wrapping.
    #[inline(always)]
    pub fn increment(&self) {
        // SAFETY: As above.
        unsafe {
            asm!("inc qword ptr [{word}]", word = in(reg) self.0.get(), options(nostack));
        }
    }

    /// Adds `value`, wrapping.
    #[inline(always)]
    pub fn add(&self, value: u64) {
        // SAFETY: As above.
        unsafe {
            asm!(
                "add qword ptr [{word}], {value}",
                word = in(reg) self.0.get(),
                value = in(reg) value,
                options(nostack),
            );
        }
    }
}

impl CountAndFlags {
    /// Decrements the count. Returns whether it is still not negative, the number is 1, and the flag
    /// is clear (`smp_load_acquire`).
    #[inline(always)]
    pub fn take_if_one(&self) -> bool {
        // SAFETY:
        // - The words are valid and aligned.
        // - By the layout number and flag form the second word. On x86 a wide load reads each half
        //   as it was written.
        unsafe {
            asm!(
                "dec qword ptr [{this}]",
                "js {no}",
                "cmp qword ptr [{this} + 8], 1",
                "jne {no}",
                this = in(reg) self,
                no = label { return false },
                options(nostack),
            );
        }
        true
    }

    /// Increments the count: the end of what [`take_if_one`](Self::take_if_one) began (`smp_store_release`).
    #[inline(always)]
    pub fn put_back(&self) {
        self.count.increment();
    }

    /// Sets the number (`smp_store_release`).
    pub fn set_number(&self, number: u32) {
        compiler_barrier();
        // SAFETY: The word is valid and aligned; volatile makes it one access.
        unsafe { self.number.get().write_volatile(number) };
    }

    /// Returns the number (`smp_load_acquire`).
    #[inline(always)]
    pub fn number(&self) -> u32 {
        // SAFETY: As above.
        let number = unsafe { self.number.get().read_volatile() };
        compiler_barrier();
        number
    }

    /// Returns whether the number is 1 (`smp_load_acquire`).
    #[inline(always)]
    pub fn is_one(&self) -> bool {
        // SAFETY: As for the words of `take_if_one`.
        unsafe {
            asm!(
                "cmp dword ptr [{this} + 8], 1",
                "jne {no}",
                this = in(reg) self,
                no = label { return false },
                options(nostack),
            );
        }
        true
    }

    /// Sets the number to `new` if it is `old`. Returns whether it did. A full barrier in both cases.
    pub fn change_number(&self, old: u32, new: u32) -> bool {
        let found: u32;
        // SAFETY: The word is valid and aligned; the instruction accesses no other memory.
        unsafe {
            asm!(
                "lock cmpxchg dword ptr [{word}], {new:e}",
                word = in(reg) self.number.get(),
                new = in(reg) new,
                inout("eax") old => found,
                options(nostack),
            );
        }
        found == old
    }
}

impl SharedWord {
    /// Returns the value; later accesses stay after the load (`smp_load_acquire`). On x86 the
    /// hardware keeps that order, so a compiler barrier is enough.
    #[inline(always)]
    pub fn load_acquire(&self) -> u64 {
        let value = self.load();
        compiler_barrier();
        value
    }

    /// Sets the value; earlier accesses stay before the store (`smp_store_release`), see
    /// [`load_acquire`](Self::load_acquire).
    #[inline(always)]
    pub fn store_release(&self, value: u64) {
        compiler_barrier();
        self.store(value);
    }

    /// Writes `new` if the value is `old`. Returns whether it did. A full barrier.
    #[inline(always)]
    pub fn compare_exchange(&self, old: u64, new: u64) -> bool {
        let found: u64;
        // SAFETY: The word is valid and aligned; the instruction accesses no other memory.
        unsafe {
            asm!(
                "lock cmpxchg qword ptr [{word}], {new}",
                word = in(reg) self.0.get(),
                new = in(reg) new,
                inout("rax") old => found,
                options(nostack),
            );
        }
        found == old
    }

    /// Adds 1, wrapping. A full barrier.
    #[inline(always)]
    pub fn increment(&self) {
        // SAFETY: As above.
        unsafe {
            asm!("lock inc qword ptr [{word}]", word = in(reg) self.0.get(), options(nostack));
        }
    }
}

/// Orders all earlier memory accesses before all later ones, between CPUs (`smp_mb()`).
#[inline(always)]
pub fn full_barrier() {
    // SAFETY: Adds 0 to the word below the stack's top, as the kernel's smp_mb() does; changes flags only.
    unsafe { asm!("lock add dword ptr [rsp - 4], 0") };
}

/// Whether each CPU's stores become visible in program order, and its loads are executed in program order.
pub const IS_ORDERED: bool = true;

/// Orders earlier memory accesses before later stores, between CPUs: only the compiler could change that order.
#[inline(always)]
pub fn release_barrier() {
    compiler_barrier();
}

/// Orders earlier loads before later memory accesses, between CPUs: only the compiler could change that order.
#[inline(always)]
pub fn acquire_barrier() {
    compiler_barrier();
}

/// Reads eight bytes at `at` plus `OFFSET`. Some may lie past the end of the object there. In
/// assembler, so that sanitizers do not check the access (`read_word_at_a_time()` in the kernel's
/// C).
///
/// # Safety
///
/// All eight bytes are in mapped pages.
#[inline(always)]
pub unsafe fn read_word<const OFFSET: usize>(at: *const u8) -> u64 {
    let word: u64;
    // SAFETY: By the contract.
    unsafe {
        asm!(
            "mov {word}, qword ptr [{at} + {offset}]",
            word = lateout(reg) word,
            at = in(reg) at,
            offset = const OFFSET,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    word
}
