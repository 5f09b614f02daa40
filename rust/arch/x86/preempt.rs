// SPDX-License-Identifier: GPL-2.0

//! Disabling preemption from where nothing that could be traced may be called.

use core::arch::asm;
use core::marker::PhantomData;
use kernel::bindings;

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
                "inc dword ptr gs:[rip + {count}]",
                count = sym bindings::__preempt_count,
                options(nostack),
            );
        }
        Self(PhantomData)
    }
}

impl Drop for NoPreempt {
    /// As `preempt_enable_notrace()`: the count reaches 0 only if a reschedule is due, because
    /// the kernel keeps that flag, inverted, in its top bit.
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY:
        // - Undoes what `new` did.
        // - The function called saves all registers.
        // - `nostack` in spite of the call: kernel code has no red zone, so nothing of ours lies
        //   where the call writes; and it keeps the stack aligned to 8 bytes only.
        #[cfg(CONFIG_PREEMPT_DYNAMIC)]
        unsafe {
            asm!(
                "dec dword ptr gs:[rip + {count}]",
                "jnz 2f",
                "call {schedule}",
                "2:",
                count = sym bindings::__preempt_count,
                schedule = sym bindings::__SCT__preempt_schedule_notrace,
                options(nostack),
            );
        }
        // SAFETY: As above.
        #[cfg(not(CONFIG_PREEMPT_DYNAMIC))]
        unsafe {
            extern "C" {
                fn preempt_schedule_notrace_thunk();
            }
            asm!(
                "dec dword ptr gs:[rip + {count}]",
                "jnz 2f",
                "call {schedule}",
                "2:",
                count = sym bindings::__preempt_count,
                schedule = sym preempt_schedule_notrace_thunk,
                options(nostack),
            );
        }
    }
}
