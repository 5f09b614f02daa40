// SPDX-License-Identifier: GPL-2.0

//! Events of the scheduler.

use crate::arch::preempt::NoPreempt;
use crate::sys::args::{ExecutedProgram, Pid, Task};

event! {
    /// A CPU goes from one task to another.
    SCHED_SWITCH: sched "sched_switch" =
        sched_switch(preempt: bool, prev: &Task, next: &Task, prev_state: u32)
    {
        prev_comm: [u8; 16] = prev.comm(),
        prev_tid: i32 = prev.tid(),
        prev_prio: i32 = prev.prio(),
        prev_state: i64 = prev.left_state(preempt, prev_state),
        next_comm: [u8; 16] = next.comm(),
        next_tid: i32 = next.tid(),
        next_prio: i32 = next.prio(),
    }
}

event! {
    /// A task is about to be woken; fired where it is woken from.
    SCHED_WAKING: sched "sched_waking" = sched_waking(task: &Task) {
        comm: [u8; 16] = task.comm(),
        tid: i32 = task.tid(),
        prio: i32 = task.prio(),
        target_cpu: i32 = task.cpu(),
    }
}

event! {
    /// A woken task is ready to run; fired on the CPU that it will run on.
    SCHED_WAKEUP: sched "sched_wakeup" = sched_wakeup(task: &Task) {
        comm: [u8; 16] = task.comm(),
        tid: i32 = task.tid(),
        prio: i32 = task.prio(),
        target_cpu: i32 = task.cpu(),
    }
}

event! {
    /// A new task is ready to run.
    SCHED_WAKEUP_NEW: sched "sched_wakeup_new" = sched_wakeup_new(task: &Task) {
        comm: [u8; 16] = task.comm(),
        tid: i32 = task.tid(),
        prio: i32 = task.prio(),
        target_cpu: i32 = task.cpu(),
    }
}

event! {
    /// A task goes from one CPU to another.
    SCHED_MIGRATE_TASK: sched "sched_migrate_task" =
        sched_migrate_task(task: &Task, dest_cpu: i32)
    {
        comm: [u8; 16] = task.comm(),
        tid: i32 = task.tid(),
        prio: i32 = task.prio(),
        orig_cpu: i32 = task.cpu(),
        dest_cpu: i32 = dest_cpu,
    }
}

event! {
    /// A task begins: a process, or a thread of its parent's process.
    SCHED_PROCESS_FORK: sched "sched_process_fork" =
        sched_process_fork(parent: &Task, child: &Task)
    {
        parent_comm: [u8; 16] = parent.comm(),
        parent_tid: i32 = parent.tid(),
        parent_pid: i32 = parent.tgid(),
        parent_ns_inum: u32 = parent.pid_namespace(&NoPreempt::new()),
        child_comm: [u8; 16] = child.comm(),
        child_tid: i32 = child.tid(),
        child_pid: i32 = child.tgid(),
        child_ns_inum: u32 = child.pid_namespace(&NoPreempt::new()),
    }
}

event! {
    /// A process goes over to another program.
    SCHED_PROCESS_EXEC: sched "sched_process_exec" =
        sched_process_exec(task: &Task, old_tid: i32, program: &ExecutedProgram)
    {
        tid: i32 = task.tid(),
        old_tid: i32 = old_tid,
    }
    string filename = program.file_name()
}

event! {
    /// A task that has ended cannot be found any more.
    SCHED_PROCESS_FREE: sched "sched_process_free" = sched_process_free(task: &Task) {
        comm: [u8; 16] = task.comm(),
        tid: i32 = task.tid(),
        prio: i32 = task.prio(),
    }
}

event! {
    /// A task waits for the end of a child, or of any.
    SCHED_PROCESS_WAIT: sched "sched_process_wait" = sched_process_wait(pid: Option<&Pid>) {
        comm: [u8; 16] = Task::current().comm(),
        tid: i32 = pid.map_or(0, Pid::number),
        prio: i32 = Task::current().prio(),
    }
}

event! {
    /// How long a task was ready and did not run. Fires only with schedstats.
    optional SCHED_STAT_WAIT: sched "sched_stat_wait" =
        sched_stat_wait(task: &Task, delay: u64)
    {
        comm: [u8; 16] = task.comm(),
        tid: i32 = task.tid(),
        delay: u64 = delay,
    }
}

event! {
    /// How long a task slept. Fires only with schedstats.
    optional SCHED_STAT_SLEEP: sched "sched_stat_sleep" =
        sched_stat_sleep(task: &Task, delay: u64)
    {
        comm: [u8; 16] = task.comm(),
        tid: i32 = task.tid(),
        delay: u64 = delay,
    }
}

event! {
    /// How long a task waited for input or output. Fires only with schedstats.
    optional SCHED_STAT_IOWAIT: sched "sched_stat_iowait" =
        sched_stat_iowait(task: &Task, delay: u64)
    {
        comm: [u8; 16] = task.comm(),
        tid: i32 = task.tid(),
        delay: u64 = delay,
    }
}

event! {
    /// How long a task was blocked. Fires only with schedstats.
    optional SCHED_STAT_BLOCKED: sched "sched_stat_blocked" =
        sched_stat_blocked(task: &Task, delay: u64)
    {
        comm: [u8; 16] = task.comm(),
        tid: i32 = task.tid(),
        delay: u64 = delay,
    }
}

event! {
    /// How long a task has run since the last event of this kind. Fires without schedstats, too.
    optional SCHED_STAT_RUNTIME: sched "sched_stat_runtime" =
        sched_stat_runtime(task: &Task, runtime: u64)
    {
        comm: [u8; 16] = task.comm(),
        tid: i32 = task.tid(),
        runtime: u64 = runtime,
    }
}

event! {
    /// A task inherits the priority of a task that waits for it, or gets its own back.
    optional SCHED_PI_SETPRIO: sched "sched_pi_setprio" =
        sched_pi_setprio(task: &Task, waiter: Option<&Task>)
    {
        comm: [u8; 16] = task.comm(),
        tid: i32 = task.tid(),
        oldprio: i32 = task.prio(),
        newprio: i32 = waiter.unwrap_or(task).prio(),
    }
}
