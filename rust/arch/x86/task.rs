// SPDX-License-Identifier: GPL-2.0

//! State of a task that the processor's part of the kernel keeps.

use core::arch::asm;
use kernel::bindings;

/// The per-CPU variable that contains the running task, and the task's place in it.
#[cfg(not(linux_6_12))]
use bindings::current_task as HOLDER;
#[cfg(not(linux_6_12))]
const PLACE: usize = 0;
#[cfg(linux_6_12)]
use bindings::pcpu_hot as HOLDER;
#[cfg(linux_6_12)]
const PLACE: usize =
    core::mem::offset_of!(bindings::pcpu_hot__bindgen_ty_1__bindgen_ty_1, current_task);

/// The two adjacent bits of a task's flags that ask for the scheduler. (6.12 has only the first.)
#[cfg(not(linux_6_12))]
const NEED_RESCHEDULE: u8 = {
    assert!(bindings::TIF_NEED_RESCHED_LAZY == bindings::TIF_NEED_RESCHED + 1);
    3
};
#[cfg(linux_6_12)]
const NEED_RESCHEDULE: u8 = 1;

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
            holder = sym HOLDER,
            place = const PLACE,
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
