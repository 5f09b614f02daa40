// SPDX-License-Identifier: GPL-2.0

//! Words for per-CPU data and for data shared between CPUs.
//!
//! Local operations are one instruction each without a LOCK prefix: an interrupt or NMI on
//! the same CPU sees them whole, another CPU does not. `kernel::sync::atomic` is an
//! out-of-line call for each operation on this kernel, so it is not used here.
//!
//! An `asm!` block without `nomem` is a compiler barrier. Both kinds of cmpxchg rely on it. Some
//! jump, so that the flags of the instruction before are used as they are.

use core::arch::asm;
use core::cell::UnsafeCell;

/// A word written by one CPU, in any of its contexts, and read by all.
#[repr(transparent)]
pub struct LocalWord(UnsafeCell<u64>);

// SAFETY: All access is by single instructions on an aligned word, or volatile. What other
// CPUs may miss by the missing LOCK prefix is the callers' concern and never memory safety.
unsafe impl Sync for LocalWord {}
// SAFETY: A plain word.
unsafe impl Send for LocalWord {}

impl LocalWord {
    /// Makes the word.
    #[inline(always)]
    pub const fn new(value: u64) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Reads it. Any CPU.
    #[inline(always)]
    pub fn load(&self) -> u64 {
        // SAFETY: The word is valid and aligned; volatile makes it one access.
        unsafe { self.0.get().read_volatile() }
    }

    /// Writes it. Only where no nested context writes it.
    #[inline(always)]
    pub fn store(&self, value: u64) {
        // SAFETY: As above.
        unsafe { self.0.get().write_volatile(value) }
    }

    /// Writes `new` if the word is `old`; says whether it did.
    #[inline(always)]
    pub fn compare_exchange(&self, old: u64, new: u64) -> bool {
        // SAFETY: The word is valid and aligned; the instructions touch nothing else.
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

    /// Subtracts, wrapping; says whether nothing is left.
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

    /// Whether the word, taken as signed, is negative.
    #[inline(always)]
    pub fn is_negative(&self) -> bool {
        (self.load() as i64) < 0
    }

    /// Adds, wrapping.
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

/// A count of one CPU's, and two flags that are written each by itself. One instruction takes from
/// the count, one looks at both flags.
#[repr(C, align(16))]
pub struct CountAndFlags {
    count: LocalWord,
    first: UnsafeCell<u32>,
    second: UnsafeCell<u32>,
}

// SAFETY: All access is by single instructions on aligned words, or volatile.
unsafe impl Sync for CountAndFlags {}
// SAFETY: Plain words.
unsafe impl Send for CountAndFlags {}

impl CountAndFlags {
    /// This count, and no flag set.
    pub const fn new(count: u64) -> Self {
        Self {
            count: LocalWord::new(count),
            first: UnsafeCell::new(0),
            second: UnsafeCell::new(0),
        }
    }

    /// The count, a signed number.
    #[inline(always)]
    pub fn count(&self) -> &LocalWord {
        &self.count
    }

    /// Takes 1 from the count. Says whether there was one, and only the first flag is set
    /// (`smp_load_acquire`).
    #[inline(always)]
    pub fn take_if_only_first(&self) -> bool {
        // SAFETY:
        // - The words are valid and aligned.
        // - By the layout the flags are the second word; x86 has a wide load see each half as it
        //   was written.
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

    /// Sets the first flag, or clears it (`smp_store_release`).
    pub fn set_first(&self, set: bool) {
        compiler_barrier();
        // SAFETY: The word is valid and aligned; volatile makes it one access.
        unsafe { self.first.get().write_volatile(set.into()) };
    }

    /// Sets the second flag, or clears it.
    #[inline(always)]
    pub fn set_second(&self, set: bool) {
        // SAFETY: As above.
        unsafe { self.second.get().write_volatile(set.into()) };
    }

    /// Whether the first flag is set (`smp_load_acquire`).
    #[inline(always)]
    pub fn is_first(&self) -> bool {
        // SAFETY: As above.
        let set = unsafe { self.first.get().read_volatile() } != 0;
        compiler_barrier();
        set
    }
}

/// A word written by several CPUs.
#[repr(transparent)]
pub struct SharedWord(UnsafeCell<u64>);

// SAFETY: All access is by single instructions on an aligned word, atomic between CPUs.
unsafe impl Sync for SharedWord {}
// SAFETY: A plain word.
unsafe impl Send for SharedWord {}

impl SharedWord {
    /// Makes the word.
    #[inline(always)]
    pub const fn new(value: u64) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Reads it, relaxed (`READ_ONCE`).
    #[inline(always)]
    pub fn load(&self) -> u64 {
        // SAFETY: The word is valid and aligned; volatile makes it one access.
        unsafe { self.0.get().read_volatile() }
    }

    /// Reads it as plain memory is read.
    ///
    /// # Safety
    ///
    /// Nobody writes it any more.
    #[inline(always)]
    pub unsafe fn load_settled(&self) -> u64 {
        // SAFETY: The word is valid and aligned; by the contract nobody writes it.
        unsafe { self.0.get().read() }
    }

    /// Reads it; later accesses stay after (`smp_load_acquire`): on x86 the hardware keeps that
    /// order, so a compiler barrier is enough.
    #[inline(always)]
    pub fn load_acquire(&self) -> u64 {
        let value = self.load();
        compiler_barrier();
        value
    }

    /// Writes it, relaxed (`WRITE_ONCE`).
    #[inline(always)]
    pub fn store(&self, value: u64) {
        // SAFETY: As for `load`.
        unsafe { self.0.get().write_volatile(value) }
    }

    /// Writes it; earlier accesses stay before (`smp_store_release`), see
    /// [`load_acquire`](Self::load_acquire).
    #[inline(always)]
    pub fn store_release(&self, value: u64) {
        compiler_barrier();
        self.store(value);
    }

    /// Writes `new` if the word is `old`; says whether it did. A full barrier.
    #[inline(always)]
    pub fn compare_exchange(&self, old: u64, new: u64) -> bool {
        let found: u64;
        // SAFETY: The word is valid and aligned; the instruction touches nothing else.
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

/// Keeps the compiler from moving memory accesses across (`barrier()`).
#[inline(always)]
pub fn compiler_barrier() {
    // SAFETY: Does nothing; without `nomem` the compiler must assume that it touches memory.
    unsafe { asm!("", options(nostack, preserves_flags)) };
}

/// `value`, of which the compiler knows nothing any more (`OPTIMIZER_HIDE_VAR()`).
#[inline(always)]
pub fn opaque(mut value: u64) -> u64 {
    // SAFETY: Does nothing.
    unsafe {
        asm!(
            "/* {value} */",
            value = inout(reg) value,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    value
}

/// Orders all memory accesses before against all after, between CPUs (`smp_mb()`).
#[inline(always)]
pub fn full_barrier() {
    // SAFETY: Adds 0 to the stack's top, as the kernel's smp_mb() does; changes flags only.
    unsafe { asm!("lock add dword ptr [rsp - 4], 0") };
}

/// Reads eight bytes `OFFSET` bytes from `at`, of which some may lie past the end of what is
/// there. In assembler, so that no sanitizer looks (`read_word_at_a_time()` in the kernel's C).
///
/// # Safety
///
/// All lie in pages that are mapped.
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
