// SPDX-License-Identifier: GPL-2.0

//! Disabling preemption, and what may still interrupt, from where nothing that could be traced may
//! be called.

use crate::record::gate::Level;
use core::arch::asm;
use core::marker::PhantomData;
use kernel::bindings;

/// The processor's flag that lets interrupts come (`X86_EFLAGS_IF`).
const INTERRUPTS: u64 = 1 << 9;

/// The word that holds the preemption count. From 7.3 on it has 64 bits, and the scheduler's flag is in the
/// half that holds nothing else.
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

/// The scheduler's flag in the lower 32 bits of the count, and how many of these count NMIs. (Expressions
/// that bindgen makes nothing of.)
#[cfg(CONFIG_HAS_SEPARATE_PREEMPT_RESCHED_BITS)]
const NEED_RESCHED: u32 = 0;
#[cfg(CONFIG_HAS_SEPARATE_PREEMPT_RESCHED_BITS)]
const NMI_BITS: u32 = 4;
#[cfg(not(CONFIG_HAS_SEPARATE_PREEMPT_RESCHED_BITS))]
use bindings::{NMI_BITS, PREEMPT_NEED_RESCHED as NEED_RESCHED};

/// Preemption is disabled while this lives: the CPU stays the same, and RCU readers' sections
/// last. Any context, NMI included.
pub struct NoPreempt(PhantomData<*mut ()>);

impl NoPreempt {
    /// As `preempt_disable_notrace()`.
    #[inline(always)]
    pub fn new() -> Self {
        // SAFETY: Increments this CPU's preemption count, which is in per-CPU memory at gs.
        unsafe {
            asm!(
                concat!("inc ", word!(), " ptr gs:[rip + {count}]"),
                count = sym bindings::__preempt_count,
                options(nostack),
            );
        }
        Self(PhantomData)
    }
}

impl Drop for NoPreempt {
    /// As `preempt_enable_notrace()`: the count reaches 0 only if a reschedule is due, because
    /// the kernel keeps that flag, inverted, in the top bit of the word.
    #[inline(always)]
    fn drop(&mut self) {
        extern "C" {
            fn rtrace_preempt_schedule();
        }
        // SAFETY:
        // - Undoes what `new` did.
        // - The function called saves all registers.
        // - `nostack` in spite of the call: kernel code has no red zone, so nothing of ours lies
        //   where the call writes; and it keeps the stack aligned to 8 bytes only.
        unsafe {
            asm!(
                concat!("dec ", word!(), " ptr gs:[rip + {count}]"),
                "jnz 2f",
                "call {schedule}",
                "2:",
                count = sym bindings::__preempt_count,
                schedule = sym rtrace_preempt_schedule,
                options(nostack),
            );
        }
    }
}

/// The lower 32 bits of this CPU's preemption count, with the scheduler's flag if it is there.
#[inline(always)]
fn count() -> u32 {
    let count;
    // SAFETY: Reads this CPU's preemption count, which is in per-CPU memory at gs.
    unsafe {
        asm!(
            "mov {count:e}, dword ptr gs:[rip + {preempt_count}]",
            preempt_count = sym bindings::__preempt_count,
            count = out(reg) count,
            options(nostack, preserves_flags),
        );
    }
    count
}

/// Whether this could be preempted but for the `guards` that live in it. Whether interrupts are
/// enabled does not matter. Any context, NMI included.
#[inline(always)]
pub fn is_preemptible(guards: u32) -> bool {
    count() & !NEED_RESCHED == guards
}

/// Whether interrupts are enabled. Any context, NMI included.
#[inline(always)]
pub fn is_interruptible() -> bool {
    let flags: u64;
    // SAFETY: Reads the flags, by the stack.
    unsafe {
        asm!("pushfq", "pop {flags}", flags = out(reg) flags, options(preserves_flags));
    }
    are_interrupts_on(flags)
}

/// Whether interrupts are enabled where the processor's flags are these.
#[inline(always)]
pub const fn are_interrupts_on(flags: u64) -> bool {
    flags & INTERRUPTS != 0
}

/// Whether this runs in an interrupt, a softirq or an NMI, as these mark it in the count: on their way in
/// and out they have not. Any context, NMI included.
#[inline(always)]
pub fn is_in_interrupt() -> bool {
    let nmi = ((1 << NMI_BITS) - 1) << bindings::NMI_SHIFT;
    let irq = ((1 << bindings::HARDIRQ_BITS) - 1) << bindings::HARDIRQ_SHIFT;
    count() & (nmi | irq | bindings::SOFTIRQ_OFFSET) != 0
}

/// What may still interrupt the context that this runs in. Any context, NMI included.
///
/// On its way in and out an interrupt runs without its mark in the preemption count, where it may
/// wake a thread or arm a timer, which are events. But it has interrupts disabled there. So whoever
/// has them disabled is an interrupt: nothing but an NMI comes after it, either.
pub fn level() -> Level {
    let count = count();
    let part = |shift: u32, bits: u32| (count >> shift) & ((1 << bits) - 1);
    let nmis = part(bindings::NMI_SHIFT, NMI_BITS);
    if nmis != 0 {
        Level::Nmi(nmis.wrapping_sub(1) as u8)
    } else if part(bindings::HARDIRQ_SHIFT, bindings::HARDIRQ_BITS) != 0 || !is_interruptible() {
        Level::Interrupt
    } else if count & bindings::SOFTIRQ_OFFSET != 0 {
        Level::Softirq
    } else {
        Level::Thread
    }
}
