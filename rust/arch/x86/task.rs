// SPDX-License-Identifier: GPL-2.0

//! State of a task that the processor's part of the kernel keeps.

use super::super::preempt::NEED_RESCHEDULE;
use super::holder::{TASK, TASK_AT};
use core::arch::asm;
use kernel::bindings;

/// Returns the running task. It lives at least as long as the caller runs. Any context, NMI
/// included.
#[inline(always)]
pub fn current() -> *const bindings::task_struct {
    let task;
    // SAFETY: Reads a per-CPU variable in memory at gs. It need not be this CPU's instance of it:
    // on each CPU that is the running task, and the caller runs in one task.
    unsafe {
        asm!(
            "mov {task}, gs:[rip + {holder} + {place}]",
            task = out(reg) task,
            holder = sym TASK,
            place = const TASK_AT,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    task
}

/// Returns whether the scheduler is due in `task`. Bit 0: at the next preemption point. Bit 1
/// (lazily): at the next tick or return to user space. Any context, NMI included.
///
/// # Safety
///
/// `task` lives.
#[inline(always)]
pub unsafe fn need_reschedule(task: *const bindings::task_struct) -> u8 {
    // SAFETY: The task lives; its flags are read once.
    let flags = unsafe { (&raw const (*task).thread_info.flags).read_volatile() };
    (flags >> bindings::TIF_NEED_RESCHED) as u8 & NEED_RESCHEDULE
}

/// Returns whether `task` is in a system call of a 32-bit program (`in_ia32_syscall()`).
///
/// # Safety
///
/// `task` is the running task.
#[inline(always)]
pub unsafe fn is_in_compat_call(task: *const bindings::task_struct) -> bool {
    #[cfg(CONFIG_COMPAT)]
    // SAFETY: The task lives, and only it writes this field.
    return unsafe { (*task).thread_info.status & bindings::TS_COMPAT != 0 };
    #[cfg(not(CONFIG_COMPAT))]
    {
        let _ = task;
        false
    }
}
