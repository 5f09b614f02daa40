// SPDX-License-Identifier: GPL-2.0

//! What the processor's part of the kernel knows of a task.

use core::arch::asm;
use kernel::bindings;

/// The task that runs this: it lives at least as long as it runs. Any context, NMI included.
#[inline(always)]
pub fn current() -> *const bindings::task_struct {
    let task;
    // SAFETY: Reads a per-CPU variable in memory at gs. Which CPU's does not matter: on each
    // it is the task that runs there, and this runs in one.
    unsafe {
        asm!(
            "mov {task}, gs:[rip + {current}]",
            task = out(reg) task,
            current = sym bindings::current_task,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    task
}

/// Whether the scheduler is due in `task`: bit 0, at the next preemption point; bit 1 (lazily), at
/// the next tick or return to user space. Any context, NMI included.
///
/// # Safety
///
/// `task` must live.
#[inline(always)]
pub unsafe fn need_reschedule(task: *const bindings::task_struct) -> u8 {
    // The two bits stand side by side.
    const _: () = assert!(bindings::TIF_NEED_RESCHED_LAZY == bindings::TIF_NEED_RESCHED + 1);
    // SAFETY: A live task; read once.
    let flags = unsafe { (&raw const (*task).thread_info.flags).read_volatile() };
    (flags >> bindings::TIF_NEED_RESCHED) as u8 & 3
}

/// Whether `task` is in a system call as a 32-bit program makes it (`in_ia32_syscall()`).
///
/// # Safety
///
/// `task` must be the task that runs this.
#[inline(always)]
pub unsafe fn is_in_compat_call(task: *const bindings::task_struct) -> bool {
    // SAFETY: A live task; what is read here only it writes.
    unsafe { (*task).thread_info.status & bindings::TS_COMPAT != 0 }
}
