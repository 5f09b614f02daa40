// SPDX-License-Identifier: GPL-2.0

//! The preemption count, and the processor's flag that disables interrupts.

use super::super::preempt::NoPreempt;
use super::holder::{COUNT, COUNT_AT};
use super::registers::Register;
use core::arch::asm;
use kernel::bindings;

/// The processor's flag that enables interrupts (`X86_EFLAGS_IF`).
const INTERRUPTS: u64 = 1 << 9;

/// Width of the word that holds the preemption count. Since 7.3 it has 64 bits, and the half
/// without the count has the scheduler's flag.
#[cfg(CONFIG_HAS_SEPARATE_PREEMPT_RESCHED_BITS)]
macro_rules! word {
    () => {
        "qword"
    };
}
#[cfg(not(CONFIG_HAS_SEPARATE_PREEMPT_RESCHED_BITS))]
macro_rules! word {
    () => {
        "dword"
    };
}

/// The scheduler's flag in the lower 32 bits of the count, and the number of these bits that count
/// NMIs. (bindgen does not translate these expressions.)
#[cfg(CONFIG_HAS_SEPARATE_PREEMPT_RESCHED_BITS)]
pub const NEED_RESCHED: u32 = 0;
#[cfg(CONFIG_HAS_SEPARATE_PREEMPT_RESCHED_BITS)]
pub const NMI_BITS: u32 = 4;
#[cfg(not(CONFIG_HAS_SEPARATE_PREEMPT_RESCHED_BITS))]
pub use bindings::{NMI_BITS, PREEMPT_NEED_RESCHED as NEED_RESCHED};

impl NoPreempt {
    /// As `preempt_disable_notrace()`.
    #[inline(always)]
    pub fn new() -> Self {
        // SAFETY: Increments this CPU's preemption count, which is in per-CPU memory at gs.
        unsafe {
            asm!(
                concat!("inc ", word!(), " ptr gs:[rip + {holder} + {place}]"),
                holder = sym COUNT,
                place = const COUNT_AT,
                options(nostack),
            );
        }
        Self::taken()
    }
}

impl Drop for NoPreempt {
    /// As `preempt_enable_notrace()`. The count reaches 0 only if a reschedule is due, because the
    /// kernel keeps that flag, inverted, in the top bit of the word.
    #[inline(always)]
    fn drop(&mut self) {
        extern "C" {
            fn rtrace_preempt_schedule();
        }
        // SAFETY:
        // - Undoes the increment of `new`.
        // - The called function saves all registers.
        // - `nostack` despite the call: kernel code has no red zone, so the call overwrites no data
        //   of the caller. Kernel code keeps the stack aligned only to 8 bytes.
        unsafe {
            asm!(
                concat!("dec ", word!(), " ptr gs:[rip + {holder} + {place}]"),
                "jnz 2f",
                "call {schedule}",
                "2:",
                holder = sym COUNT,
                place = const COUNT_AT,
                schedule = sym rtrace_preempt_schedule,
                options(nostack),
            );
        }
    }
}

/// Returns the lower 32 bits of this CPU's preemption count, with the scheduler's flag if that is
/// in them.
#[inline(always)]
pub fn count() -> u32 {
    let count;
    // SAFETY: Reads this CPU's preemption count, which is in per-CPU memory at gs.
    unsafe {
        asm!(
            "mov {count:e}, dword ptr gs:[rip + {holder} + {place}]",
            holder = sym COUNT,
            place = const COUNT_AT,
            count = out(reg) count,
            options(nostack, preserves_flags),
        );
    }
    count
}

/// Returns whether interrupts are enabled. Any context, NMI included.
#[inline(always)]
pub fn is_interruptible() -> bool {
    let flags: u64;
    // SAFETY: Reads the flags, through the stack. `nostack` nevertheless: kernel code has no red zone, so the
    // push overwrites no data of the caller. Otherwise the compiler would align the stack of each probe.
    unsafe {
        asm!("pushfq", "pop {flags}", flags = out(reg) flags, options(nostack, preserves_flags));
    }
    flags & INTERRUPTS != 0
}

/// Returns whether interrupts were enabled in code with these registers.
#[inline(always)]
pub fn was_interruptible(register: impl Fn(Register) -> u64) -> bool {
    register(Register::Flags) & INTERRUPTS != 0
}
