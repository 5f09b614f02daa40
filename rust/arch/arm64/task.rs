// SPDX-License-Identifier: GPL-2.0

//! State of a task that the processor's part of the kernel keeps.

use super::super::preempt::NEED_RESCHEDULE;
use core::arch::asm;
use kernel::bindings;

/// Returns the running task. It lives at least as long as the caller runs. Any context, NMI
/// included.
#[inline(always)]
pub fn current() -> *const bindings::task_struct {
    let task;
    // SAFETY: Reads a register, which has the running task on each CPU.
    unsafe {
        asm!("mrs {task}, sp_el0", task = out(reg) task, options(pure, nomem, nostack, preserves_flags));
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

/// Returns whether `task` is in a system call of a 32-bit program (`is_compat_task()`).
///
/// # Safety
///
/// `task` is the running task.
#[inline(always)]
pub unsafe fn is_in_compat_call(task: *const bindings::task_struct) -> bool {
    // SAFETY: The task lives; its flags are read once.
    let flags = unsafe { (&raw const (*task).thread_info.flags).read_volatile() };
    flags & (1 << bindings::TIF_32BIT) != 0
}
