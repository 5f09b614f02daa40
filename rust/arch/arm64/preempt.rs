// SPDX-License-Identifier: GPL-2.0

//! Disabling of preemption, and the level of the running context, for code that must not call any
//! traceable function.

use super::task::current;
use crate::record::gate::Level;
use core::arch::asm;
use core::marker::PhantomData;
use core::mem::offset_of;
use kernel::bindings;

/// The processor's flag that disables interrupts (`PSR_I_BIT`).
const NO_INTERRUPTS: u64 = 1 << 7;

/// Offset of a task's preemption count: the lower half of a word whose upper half is 0 if a reschedule is due.
const COUNT: usize = offset_of!(bindings::task_struct, thread_info.__bindgen_anon_1);

/// Number of bits of the count that count NMIs. (bindgen does not translate the expression of each kernel.)
const NMI_BITS: u32 = 4;

/// A guard that disables preemption while it exists. The caller stays on its CPU, in an RCU
/// read-side section. Any context, NMI included.
pub struct NoPreempt(PhantomData<*mut ()>);

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
        Self(PhantomData)
    }
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
        // - The called function saves all registers but the link register. The call, out of line, saves that in a frame
        //   record. So the compiler need not save it in each probe.
        // - `nostack` despite the push: kernel code has no red zone, so it overwrites no data of the caller.
        unsafe {
            asm!(
                "ldr {count:w}, [{task}, {at}]",
                "sub {count:w}, {count:w}, 1",
                "str {count:w}, [{task}, {at}]",
                "ldr {count}, [{task}, {at}]",
                "cbz {count}, 3f",
                "2:",
                ".subsection 1",
                "3:",
                "stp x29, x30, [sp, -16]!",
                "mov x29, sp",
                "bl {schedule}",
                "ldp x29, x30, [sp], 16",
                "b 2b",
                ".previous",
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
fn count() -> u32 {
    // SAFETY: The running task lives; its count is read once.
    unsafe { current().byte_add(COUNT).cast::<u32>().read_volatile() }
}

/// Returns whether the caller could be preempted if the `guards` guards it has did not exist.
/// Ignores whether interrupts are enabled. Any context, NMI included.
#[inline(always)]
pub fn is_preemptible(guards: u32) -> bool {
    count() == guards
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

/// Returns whether the caller is in an interrupt, a softirq or an NMI, by their marks in the
/// preemption count. They have no mark at their very beginning and end. Any context, NMI included.
#[inline(always)]
pub fn is_in_interrupt() -> bool {
    let nmi = ((1 << NMI_BITS) - 1) << bindings::NMI_SHIFT;
    let irq = ((1 << bindings::HARDIRQ_BITS) - 1) << bindings::HARDIRQ_SHIFT;
    count() & (nmi | irq | bindings::SOFTIRQ_OFFSET) != 0
}

/// Returns the level of the calling context. Any context, NMI included.
///
/// At its beginning and end an interrupt has no mark in the preemption count. There it may wake a
/// thread or arm a timer, which are events. But it has interrupts disabled there. So every context
/// with interrupts disabled counts as an interrupt: only an NMI or a breakpoint can interrupt it, too.
///
/// A breakpoint (the place of a kprobe) has no mark. It disables interrupts, so it counts as an interrupt.
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
