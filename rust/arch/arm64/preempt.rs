// SPDX-License-Identifier: GPL-2.0

//! The preemption count, and the processor's flag that disables interrupts.

use super::super::preempt::NoPreempt;
use super::registers::Register;
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

/// The priorities of interrupts: with pseudo-NMIs, the kernel disables the other interrupts by a mask of priorities. Only
/// at the beginning and end of an interrupt, and in a few other places, it disables all interrupts by the flag.
///
/// The kernel decides at boot whether it uses them, and replaces the instructions when it loads the module.
#[cfg(CONFIG_ARM64_PSEUDO_NMI)]
mod priority {
    use super::*;

    /// The mask that enables all interrupts (`GIC_PRIO_IRQON`; `sys/features.c` compares).
    const ALL: u64 = 0xe0;

    /// Whether the mask enables all interrupts. (The register is `ICC_PMR_EL1`.)
    #[inline(always)]
    pub(super) fn enables_all() -> bool {
        let mask: u64;
        // SAFETY: Reads a register, on a processor that has it.
        unsafe {
            asm!(
                alternative!("mov {mask}, {all}", "mrs {mask}, S3_0_C4_C6_0"),
                mask = out(reg) mask,
                all = const ALL,
                capability = const bindings::ARM64_HAS_GIC_PRIO_MASKING,
                options(nostack, preserves_flags),
            );
        }
        mask == ALL
    }

    /// Whether this mask, which the kernel has saved, enables all interrupts.
    pub(super) fn enabled_all(mask: u64) -> bool {
        let is_used: u64;
        // SAFETY: Sets a register.
        unsafe {
            asm!(
                alternative!("mov {used}, 0", "mov {used}, 1"),
                used = out(reg) is_used,
                capability = const bindings::ARM64_HAS_GIC_PRIO_MASKING,
                options(nostack, preserves_flags),
            );
        }
        is_used == 0 || mask == ALL
    }
}

/// All interrupts have one priority.
#[cfg(not(CONFIG_ARM64_PSEUDO_NMI))]
mod priority {
    #[inline(always)]
    pub(super) fn enables_all() -> bool {
        true
    }

    #[inline(always)]
    pub(super) fn enabled_all(_mask: u64) -> bool {
        true
    }
}

/// Returns whether interrupts are enabled, all of them. Any context, NMI included.
#[inline(always)]
pub fn is_interruptible() -> bool {
    let flags: u64;
    // SAFETY: Reads the flags.
    unsafe { asm!("mrs {flags}, daif", flags = out(reg) flags, options(nostack, preserves_flags)) };
    flags & NO_INTERRUPTS == 0 && priority::enables_all()
}

/// Returns whether interrupts were enabled in code with these registers.
#[inline(always)]
pub fn was_interruptible(register: impl Fn(Register) -> u64) -> bool {
    // The mask is in the upper half of the word that has the number of the system call.
    const _: () =
        assert!(offset_of!(bindings::pt_regs, pmr) == offset_of!(bindings::pt_regs, syscallno) + 4);
    register(Register::Flags) & NO_INTERRUPTS == 0
        && priority::enabled_all(register(Register::SyscallNo) >> 32)
}
