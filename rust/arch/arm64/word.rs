// SPDX-License-Identifier: GPL-2.0

//! Operations on words.
//!
//! Local operations are one atomic instruction each, without an order: they are atomic for interrupts and NMIs of the
//! same CPU. A processor without the Large System Extensions executes a loop instead (see [`alternative`]). Some blocks
//! jump, to use the flags of the previous instruction directly.
//!
//! [`alternative`]: super::alternative

use super::super::word::{CountAndFlags, LocalWord, SharedWord};
use super::alternative::LSE;
use core::arch::asm;

impl LocalWord {
    /// Returns the value; later accesses stay after the load (`smp_load_acquire`). Any CPU.
    #[inline(always)]
    pub fn load_acquire(&self) -> u64 {
        let value;
        // SAFETY: The word is valid and aligned.
        unsafe {
            asm!(
                "ldar {value}, [{word}]",
                value = out(reg) value,
                word = in(reg) self.0.get(),
                options(nostack, preserves_flags),
            );
        }
        value
    }

    /// Sets the value; earlier accesses stay before the store (`smp_store_release`).
    #[inline(always)]
    pub fn store_release(&self, value: u64) {
        // SAFETY: As for `load_acquire`.
        unsafe {
            asm!(
                "stlr {value}, [{word}]",
                value = in(reg) value,
                word = in(reg) self.0.get(),
                options(nostack, preserves_flags),
            );
        }
    }

    /// Writes `new` if the value is `old`. Returns whether it did.
    #[inline(always)]
    pub fn compare_exchange(&self, old: u64, new: u64) -> bool {
        // SAFETY: The word is valid and aligned; the instructions access no other memory.
        unsafe {
            asm!(
                lse!(
                    "cas {found}, {new}, [{word}]",
                    "ldxr {found}, [{word}]",
                    "cmp {found}, {old}",
                    "b.ne 666f",
                    "stxr {again:w}, {new}, [{word}]",
                    "cbnz {again:w}, 665b"
                ),
                "cmp {found}, {old}",
                "b.ne {failed}",
                word = in(reg) self.0.get(),
                new = in(reg) new,
                old = in(reg) old,
                found = inout(reg) old => _,
                again = out(reg) _,
                capability = const LSE,
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
                lse!(
                    "ldadd {value}, {had}, [{word}]",
                    "ldxr {had}, [{word}]",
                    "add {sum}, {had}, {value}",
                    "stxr {again:w}, {sum}, [{word}]",
                    "cbnz {again:w}, 665b"
                ),
                "cmn {had}, {value}",
                "b.eq {nothing}",
                word = in(reg) self.0.get(),
                value = in(reg) value.wrapping_neg(),
                had = out(reg) _,
                sum = out(reg) _,
                again = out(reg) _,
                capability = const LSE,
                nothing = label { return true },
                options(nostack),
            );
        }
        false
    }

    /// Adds 1, wrapping.
    #[inline(always)]
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds `value`, wrapping.
    #[inline(always)]
    pub fn add(&self, value: u64) {
        // SAFETY: As above.
        unsafe {
            asm!(
                lse!(
                    "ldadd {value}, {had}, [{word}]",
                    "ldxr {had}, [{word}]",
                    "add {sum}, {had}, {value}",
                    "stxr {again:w}, {sum}, [{word}]",
                    "cbnz {again:w}, 665b"
                ),
                word = in(reg) self.0.get(),
                value = in(reg) value,
                had = out(reg) _,
                sum = out(reg) _,
                again = out(reg) _,
                capability = const LSE,
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
        // - By the layout number and flag form the second word. A wide load reads each half as it was written.
        unsafe {
            asm!(
                "ldr {value}, [{this}]",
                "subs {value}, {value}, 1",
                "str {value}, [{this}]",
                "b.mi {no}",
                "add {value}, {this}, 8",
                "ldar {value}, [{value}]",
                "cmp {value}, 1",
                "b.ne {no}",
                this = in(reg) self,
                value = out(reg) _,
                no = label { return false },
                options(nostack),
            );
        }
        true
    }

    /// Increments the count: the end of what [`take_if_one`](Self::take_if_one) began (`smp_store_release`).
    #[inline(always)]
    pub fn put_back(&self) {
        // SAFETY: The word is valid and aligned.
        unsafe {
            asm!(
                "ldr {value}, [{this}]",
                "add {value}, {value}, 1",
                "stlr {value}, [{this}]",
                this = in(reg) self,
                value = out(reg) _,
                options(nostack, preserves_flags),
            );
        }
    }

    /// Sets the number (`smp_store_release`).
    pub fn set_number(&self, number: u32) {
        // SAFETY: The word is valid and aligned.
        unsafe {
            asm!(
                "stlr {number:w}, [{word}]",
                number = in(reg) number,
                word = in(reg) self.number.get(),
                options(nostack, preserves_flags),
            );
        }
    }

    /// Returns the number (`smp_load_acquire`).
    #[inline(always)]
    pub fn number(&self) -> u32 {
        let number;
        // SAFETY: As above.
        unsafe {
            asm!(
                "ldar {number:w}, [{word}]",
                number = out(reg) number,
                word = in(reg) self.number.get(),
                options(nostack, preserves_flags),
            );
        }
        number
    }

    /// Returns whether the number is 1 (`smp_load_acquire`).
    #[inline(always)]
    pub fn is_one(&self) -> bool {
        self.number() == 1
    }

    /// Sets the number to `new` if it is `old`. Returns whether it did. A full barrier in both cases.
    pub fn change_number(&self, old: u32, new: u32) -> bool {
        let found: u32;
        full_barrier();
        // SAFETY: The word is valid and aligned; the instructions access no other memory.
        unsafe {
            asm!(
                "2:",
                "ldxr {found:w}, [{word}]",
                "cmp {found:w}, {old:w}",
                "b.ne 3f",
                "stxr {again:w}, {new:w}, [{word}]",
                "cbnz {again:w}, 2b",
                "3:",
                word = in(reg) self.number.get(),
                new = in(reg) new,
                old = in(reg) old,
                found = out(reg) found,
                again = out(reg) _,
                options(nostack),
            );
        }
        full_barrier();
        found == old
    }
}

impl SharedWord {
    /// Returns the value; later accesses stay after the load (`smp_load_acquire`).
    #[inline(always)]
    pub fn load_acquire(&self) -> u64 {
        let value;
        // SAFETY: The word is valid and aligned.
        unsafe {
            asm!(
                "ldar {value}, [{word}]",
                value = out(reg) value,
                word = in(reg) self.0.get(),
                options(nostack, preserves_flags),
            );
        }
        value
    }

    /// Sets the value; earlier accesses stay before the store (`smp_store_release`), see
    /// [`load_acquire`](Self::load_acquire).
    #[inline(always)]
    pub fn store_release(&self, value: u64) {
        // SAFETY: As for `load_acquire`.
        unsafe {
            asm!(
                "stlr {value}, [{word}]",
                value = in(reg) value,
                word = in(reg) self.0.get(),
                options(nostack, preserves_flags),
            );
        }
    }

    /// Writes `new` if the value is `old`. Returns whether it did. A full barrier.
    #[inline(always)]
    pub fn compare_exchange(&self, old: u64, new: u64) -> bool {
        let found: u64;
        full_barrier();
        // SAFETY: The word is valid and aligned; the instructions access no other memory.
        unsafe {
            asm!(
                lse!(
                    "cas {found}, {new}, [{word}]",
                    "ldxr {found}, [{word}]",
                    "cmp {found}, {old}",
                    "b.ne 666f",
                    "stxr {again:w}, {new}, [{word}]",
                    "cbnz {again:w}, 665b"
                ),
                word = in(reg) self.0.get(),
                new = in(reg) new,
                old = in(reg) old,
                found = inout(reg) old => found,
                again = out(reg) _,
                capability = const LSE,
                options(nostack),
            );
        }
        full_barrier();
        found == old
    }

    /// Adds 1, wrapping. A full barrier.
    #[inline(always)]
    pub fn increment(&self) {
        full_barrier();
        // SAFETY: As above.
        unsafe {
            asm!(
                lse!(
                    "ldadd {value}, {had}, [{word}]",
                    "ldxr {had}, [{word}]",
                    "add {sum}, {had}, {value}",
                    "stxr {again:w}, {sum}, [{word}]",
                    "cbnz {again:w}, 665b"
                ),
                word = in(reg) self.0.get(),
                value = in(reg) 1_u64,
                had = out(reg) _,
                sum = out(reg) _,
                again = out(reg) _,
                capability = const LSE,
                options(nostack),
            );
        }
        full_barrier();
    }
}

/// Orders all earlier memory accesses before all later ones, between CPUs (`smp_mb()`).
#[inline(always)]
pub fn full_barrier() {
    // SAFETY: A barrier.
    unsafe { asm!("dmb ish", options(nostack, preserves_flags)) };
}

/// Whether each CPU's stores become visible in program order, and its loads are executed in program order.
pub const IS_ORDERED: bool = false;

/// Orders earlier memory accesses before later stores, between CPUs.
#[inline(always)]
pub fn release_barrier() {
    full_barrier();
}

/// Orders earlier loads before later memory accesses, between CPUs.
#[inline(always)]
pub fn acquire_barrier() {
    // SAFETY: A barrier.
    unsafe { asm!("dmb ishld", options(nostack, preserves_flags)) };
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
            "ldr {word}, [{at}, {offset}]",
            word = lateout(reg) word,
            at = in(reg) at,
            offset = const OFFSET,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    word
}
