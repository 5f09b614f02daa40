// SPDX-License-Identifier: GPL-2.0

//! Disabling of preemption, and the level of the running context, for code that must not call any
//! traceable function.

use super::processor::preempt::{count, NEED_RESCHED, NMI_BITS};
use super::record::gate::Level;
use core::marker::PhantomData;
use kernel::bindings;

pub use super::processor::preempt::{is_interruptible, was_interruptible};

/// The adjacent bits of a task's flags that ask for the scheduler: at the next preemption point and, if the kernel has
/// that, lazily. (`sys/features.c` compares their numbers.)
pub(super) const NEED_RESCHEDULE: u8 = match cfg!(kernel_has = "lazy_reschedule") {
    true => 3,
    false => 1,
};

/// A guard that disables preemption while it exists. The caller stays on its CPU, in an RCU
/// read-side section. Any context, NMI included. The processor has its `new` and `drop`.
pub struct NoPreempt(PhantomData<*mut ()>);

impl NoPreempt {
    /// Makes a guard of a caller that has disabled preemption.
    #[inline(always)]
    pub(super) fn taken() -> Self {
        Self(PhantomData)
    }
}

/// Returns whether the caller could be preempted if the `guards` guards it has did not exist.
/// Ignores whether interrupts are enabled. Any context, NMI included.
#[inline(always)]
pub fn is_preemptible(guards: u32) -> bool {
    count() & !NEED_RESCHED == guards
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
/// with interrupts disabled counts as an interrupt: only an NMI can interrupt it, too.
///
/// A breakpoint (the place of a kprobe) counts as an NMI on x86. On arm64 it has no mark, but disables interrupts, so it
/// counts as an interrupt. A pseudo-NMI of arm64 has the mark of an NMI.
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
