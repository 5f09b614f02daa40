// SPDX-License-Identifier: GPL-2.0

//! Tasks and process ids.

pub(super) mod ids;
pub(super) mod number;

use self::number::TaskNumber;
use crate::arch::preempt::NoPreempt;
use crate::arch::task;
use crate::sys::bindings;
use crate::sys::tracepoint::Arg;
use core::marker::PhantomData;
use core::ops::Deref;
use kernel::types::Opaque;

/// A `struct task_struct`.
#[repr(transparent)]
pub(crate) struct Task(Opaque<bindings::task_struct>);

// SAFETY: The pointer is to a live task. No tracepoint passes NULL for it.
unsafe impl Arg for &Task {
    type Raw = *mut bindings::task_struct;
}

// SAFETY: The pointer is to a live task, or NULL.
unsafe impl Arg for Option<&Task> {
    type Raw = *mut bindings::task_struct;
}

impl Task {
    /// Maximum length of a name in bytes, without the NUL.
    pub(super) const NAME_MAX: usize = 15;

    /// The task that runs this code.
    #[inline(always)]
    pub(crate) fn current() -> CurrentTask {
        CurrentTask(PhantomData)
    }

    /// Its name, padded with NUL.
    #[inline(always)]
    pub(crate) fn comm(&self) -> [u8; 16] {
        // SAFETY: The task is live. A rename at this moment may mix two names.
        unsafe { (&raw const (*self.0.get()).comm).cast::<[u8; 16]>().read() }
    }

    /// Thread id in the initial namespace.
    #[inline(always)]
    pub(crate) fn tid(&self) -> i32 {
        // SAFETY: The task is live. The id never changes.
        unsafe { (*self.0.get()).pid }
    }

    /// Process id (thread group id) in the initial namespace.
    #[inline(always)]
    pub(crate) fn pid(&self) -> i32 {
        // SAFETY: The task is live. The id changes only in exec.
        unsafe { (*self.0.get()).tgid }
    }

    /// Adjustment of the OOM killer's score of its process: -1000 to 1000. Higher means killed earlier.
    #[inline(always)]
    pub(crate) fn oom_score_adj(&self) -> i16 {
        // SAFETY: A live task has its `signal_struct` until its end. The field is read once.
        unsafe { (&raw const (*(*self.0.get()).signal).oom_score_adj).read_volatile() }
    }

    /// Priority as LTTng shows it: 0 is the lowest real-time priority, 20 the default.
    #[inline(always)]
    pub(crate) fn prio(&self) -> i32 {
        self.number(TaskNumber::PRIO)
    }

    /// The CPU of the task.
    #[inline(always)]
    pub(crate) fn cpu(&self) -> i32 {
        self.number(TaskNumber::CPU)
    }

    /// Number of traced calls around the current one. Meaningful only in a call whose return is traced.
    #[inline(always)]
    pub(crate) fn graph_depth(&self) -> u32 {
        self.number(TaskNumber::GRAPH_DEPTH) as u32
    }

    /// Number of its calls whose returns were not traced for lack of room.
    #[inline(always)]
    pub(crate) fn graph_overrun(&self) -> u32 {
        self.number(TaskNumber::GRAPH_OVERRUN) as u32
    }

    /// Whether the task must call the scheduler, and how soon. Bit 0: at the next preemption point. Bit 1
    /// (lazily): at the next tick or return to user space. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn need_reschedule(&self) -> u8 {
        // SAFETY: The task is live.
        unsafe { task::need_reschedule(self.0.get()) }
    }

    /// The state in which a CPU leaves the task, after it has read `state` (`TASK_...`). In the form that
    /// tracers show: one bit of `TASK_REPORT`, 0 if the task can run on, `TASK_REPORT_MAX` if it was preempted.
    #[inline(always)]
    pub(crate) fn left_state(&self, preempted: bool, state: u32) -> i64 {
        use bindings::{TASK_FROZEN, TASK_IDLE, TASK_NOLOAD, TASK_REPORT, TASK_RTLOCK_WAIT};
        if preempted {
            return bindings::TASK_REPORT_MAX.into();
        }
        // SAFETY: The task is live. The field is read once.
        let exit = unsafe { (&raw const (*self.0.get()).exit_state).read_volatile() as u32 };
        let mut shown = (state | exit) & TASK_REPORT;
        if state & (TASK_NOLOAD | TASK_RTLOCK_WAIT | TASK_FROZEN) != 0 {
            shown = if state & (TASK_RTLOCK_WAIT | TASK_FROZEN) != 0 {
                bindings::TASK_UNINTERRUPTIBLE
            } else if state & TASK_IDLE == TASK_IDLE {
                bindings::TASK_REPORT_IDLE
            } else {
                shown
            };
        }
        // Only the highest bit is kept. Except for rare combinations, there is one bit or none.
        if shown & shown.wrapping_sub(1) != 0 {
            shown = 1u32.wrapping_shl(31u32.wrapping_sub(shown.leading_zeros()));
        }
        shown.into()
    }

    /// Thread id in the task's own namespace; 0 if it has none any more.
    #[inline(always)]
    pub(crate) fn tid_in_namespace(&self, _guard: &NoPreempt) -> i32 {
        // SAFETY: The task is live.
        let pid = unsafe { (&raw const (*self.0.get()).thread_pid).read_volatile() };
        // SAFETY: The guard makes this an RCU reader, so the task's pid is not freed.
        unsafe { innermost(pid) }.map_or(0, |number| number.nr)
    }

    /// Process id in the task's own namespace; 0 if it has none any more.
    #[inline(always)]
    pub(crate) fn pid_in_namespace(&self, _guard: &NoPreempt) -> i32 {
        const TGID: usize = bindings::pid_type_PIDTYPE_TGID as usize;
        // SAFETY: A live task has its `signal_struct` until its end.
        let pid = unsafe { (&raw const (*(*self.0.get()).signal).pids[TGID]).read_volatile() };
        // SAFETY: As for `tid_in_namespace`.
        unsafe { innermost(pid) }.map_or(0, |number| number.nr)
    }

    /// Inode number of the task's process id namespace; 0 if it has none any more.
    #[inline(always)]
    pub(crate) fn pid_namespace(&self, _guard: &NoPreempt) -> u32 {
        // SAFETY: The task is live.
        let pid = unsafe { (&raw const (*self.0.get()).thread_pid).read_volatile() };
        // SAFETY: As for `tid_in_namespace`. A pid holds references to its namespaces.
        unsafe {
            innermost(pid)
                .and_then(|number| number.ns.as_ref())
                .map_or(0, |namespace| namespace.ns.inum)
        }
    }
}

/// The number of a pid in its innermost namespace; [`None`] for NULL.
///
/// # Safety
///
/// `pid` must be NULL or point to a live pid.
#[inline(always)]
unsafe fn innermost<'a>(pid: *const bindings::pid) -> Option<&'a bindings::upid> {
    if pid.is_null() {
        return None;
    }
    // SAFETY: By the contract. A pid has `level + 1` numbers.
    unsafe {
        let numbers = (&raw const (*pid).numbers).cast::<bindings::upid>();
        numbers.add((*pid).level as usize).as_ref()
    }
}

/// The task that runs the code which has this value. The task does not end before that code. The code does not
/// move the value to another task.
pub(crate) struct CurrentTask(PhantomData<*mut ()>);

impl Deref for CurrentTask {
    type Target = Task;

    #[inline(always)]
    fn deref(&self) -> &Task {
        // SAFETY: The task is live, as the type guarantees. A `Task` is transparent.
        unsafe { &*task::current().cast::<Task>() }
    }
}

impl CurrentTask {
    /// The kernel's pointer to the task.
    #[inline(always)]
    pub(super) fn as_ptr(&self) -> *const bindings::task_struct {
        let task: &Task = self;
        task.0.get()
    }

    /// Id of the task's cgroup (v2): the inode number of the cgroup's directory. 0 if the kernel has no
    /// cgroups. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn cgroup_id(&self, _guard: &NoPreempt) -> u64 {
        // SAFETY:
        // - A live task has a set of cgroups. The guard makes this an RCU reader, so the set is not freed.
        // - The set holds references to its cgroups, and each cgroup to its node.
        #[cfg(CONFIG_CGROUPS)]
        unsafe {
            let set = (&raw const (*self.as_ptr()).cgroups).read_volatile();
            (*(*(*set).dfl_cgrp).kn).id
        }
        #[cfg(not(CONFIG_CGROUPS))]
        0
    }

    /// Whether the task is in a system call that was made as 32-bit programs make it (`in_ia32_syscall()`).
    #[inline(always)]
    pub(crate) fn is_in_compat_call(&self) -> bool {
        // SAFETY: The task is live. Only the task itself writes the value.
        unsafe { task::is_in_compat_call(self.as_ptr()) }
    }
}

/// A `struct pid`: a process id, with its number in each namespace that has it.
#[repr(transparent)]
pub(crate) struct Pid(Opaque<bindings::pid>);

// SAFETY: The pointer is to a live pid, or NULL.
unsafe impl Arg for Option<&Pid> {
    type Raw = *mut bindings::pid;
}

impl Pid {
    /// The number in the initial namespace.
    #[inline(always)]
    pub(crate) fn number(&self) -> i32 {
        // SAFETY: The pid is live. It has at least one number, which never changes.
        unsafe {
            (&raw const (*self.0.get()).numbers)
                .cast::<bindings::upid>()
                .read()
                .nr
        }
    }
}
