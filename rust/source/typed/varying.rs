// SPDX-License-Identifier: GPL-2.0

//! Events whose tracepoints have another name or other arguments in older kernels (`sys/features.c`).

use crate::source::field::KernelAddress;
use crate::sys::args::{HrTimer, Task};

#[cfg(kernel_has = "exit_group_dead")]
event! {
    /// A task ends.
    SCHED_PROCESS_EXIT: sched "sched_process_exit" =
        sched_process_exit(task: &Task, group_dead: bool)
    {
        comm: [u8; 16] = task.comm(),
        tid: i32 = task.tid(),
        prio: i32 = task.prio(),
        group_dead: u8 = group_dead.into(),
        exit_code: i32 = task.exit_code(),
    }
}

#[cfg(not(kernel_has = "exit_group_dead"))]
event! {
    /// A task ends.
    SCHED_PROCESS_EXIT: sched "sched_process_exit" =
        sched_process_exit(task: &Task)
    {
        comm: [u8; 16] = task.comm(),
        tid: i32 = task.tid(),
        prio: i32 = task.prio(),
        group_dead: u8 = task.is_group_dead().into(),
        exit_code: i32 = task.exit_code(),
    }
}

#[cfg(kernel_has = "trace_hrtimer_setup")]
event! {
    /// A high-resolution timer is made ready for use.
    optional TIMER_HRTIMER_INIT: timer "timer_hrtimer_init" =
        hrtimer_setup(hrtimer: &HrTimer, clockid: i32, mode: u32)
    {
        hrtimer: KernelAddress = KernelAddress::new(hrtimer.address()),
        clockid: i32 = clockid,
        mode: u32 = mode,
    }
}

#[cfg(not(kernel_has = "trace_hrtimer_setup"))]
event! {
    /// A high-resolution timer is made ready for use.
    optional TIMER_HRTIMER_INIT: timer "timer_hrtimer_init" =
        hrtimer_init(hrtimer: &HrTimer, clockid: i32, mode: u32)
    {
        hrtimer: KernelAddress = KernelAddress::new(hrtimer.address()),
        clockid: i32 = clockid,
        mode: u32 = mode,
    }
}
