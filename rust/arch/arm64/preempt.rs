// SPDX-License-Identifier: GPL-2.0

//! The preemption count, and the processor's flag that disables interrupts.

use super::super::preempt::NoPreempt;
use super::task::current;
use core::arch::asm;
use core::mem::offset_of;
use kernel::bindings;

/// The processor's flag that disables interrupts (`PSR_I_BIT`).
const NO_INTERRUPTS: u64 = 1 << 7;

/// Offset of a task's preemption count: the lower half of a word whose upper half is 0 if a reschedule is due.
const COUNT: usize = offset_of!(bindings::task_struct, thread_info.__bindgen_anon_1);

/// The scheduler's flag in the lower half of the count: none.
pub const NEED_RESCHED: u32 = 0;
/// Number of bits of the count that count NMIs. (bindgen does not translate the expression of each kernel.)
pub const NMI_BITS: u32 = 4;

impl NoPreempt {
    /// As `preempt_disable_notrace()`.
    #[inline(always)]
    pub fn new() -> Self {
        // SAFETY: Increments the running task's count. A context that interrupts this leaves the count as it was.
        unsafe {
            asm!(
                "ldr {count:w}, [{task}, {at}]",
                "add {count:w}, {count:w}, 1",
                "str {count:w}, [{task}, {at}]",
                task = in(reg) current(),
                count = out(reg) _,
                at = const COUNT,
                options(nostack, preserves_flags),
            );
        }
        Self::taken()
    }
}

/// A template for `asm!`: instructions that are executed if `count` is 0, out of line.
#[cfg(not(CONFIG_KASAN))]
macro_rules! if_zero {
    ($($instruction:literal),+) => {
        concat!(
            "cbz {count}, 3f\n2:\n.subsection 1\n3:\n",
            $($instruction, "\n",)+
            "b 2b\n.previous",
        )
    };
}
/// In line: the instrumented code is larger than the 1 MiB that a conditional branch reaches.
#[cfg(CONFIG_KASAN)]
macro_rules! if_zero {
    ($($instruction:literal),+) => {
        concat!("cbnz {count}, 2f\n", $($instruction, "\n",)+ "2:")
    };
}

impl Drop for NoPreempt {
    /// As `preempt_enable_notrace()`. The word is 0 only if nothing disables preemption and a reschedule is due. It is
    /// read after the count was written, because an interrupt may request a reschedule, or do it, until then.
    #[inline(always)]
    fn drop(&mut self) {
        extern "C" {
            fn rtrace_preempt_schedule();
        }
        // SAFETY:
        // - Undoes the increment of `new`.
        // - The called function saves all registers but the link register. The code of the call saves that in a frame
        //   record. So the compiler need not save it in each probe.
        // - `nostack` despite the push: kernel code has no red zone, so it overwrites no data of the caller.
        unsafe {
            asm!(
                "ldr {count:w}, [{task}, {at}]",
                "sub {count:w}, {count:w}, 1",
                "str {count:w}, [{task}, {at}]",
                "ldr {count}, [{task}, {at}]",
                if_zero!(
                    "stp x29, x30, [sp, -16]!",
                    "mov x29, sp",
                    "bl {schedule}",
                    "ldp x29, x30, [sp], 16"
                ),
                task = in(reg) current(),
                count = out(reg) _,
                at = const COUNT,
                schedule = sym rtrace_preempt_schedule,
                options(nostack, preserves_flags),
            );
        }
    }
}

/// Returns the running task's preemption count.
#[inline(always)]
pub fn count() -> u32 {
    // SAFETY: The running task lives; its count is read once.
    unsafe { current().byte_add(COUNT).cast::<u32>().read_volatile() }
}

/// Returns whether interrupts are enabled. Any context, NMI included.
#[inline(always)]
pub fn is_interruptible() -> bool {
    let flags: u64;
    // SAFETY: Reads the flags.
    unsafe { asm!("mrs {flags}, daif", flags = out(reg) flags, options(nostack, preserves_flags)) };
    are_interrupts_on(flags)
}

/// Returns whether these processor flags enable interrupts.
#[inline(always)]
pub const fn are_interrupts_on(flags: u64) -> bool {
    flags & NO_INTERRUPTS == 0
}
