// SPDX-License-Identifier: GPL-2.0

//! A task, and a process id.

pub(super) mod ids;
pub(super) mod number;

use self::number::TaskNumber;
use crate::arch::preempt::NoPreempt;
use crate::arch::task;
use crate::record::memory::UnalignedInteger;
use crate::sys::bindings;
use crate::sys::tracepoint::Arg;
use core::hint::assert_unchecked;
use core::marker::PhantomData;
use core::ops::Deref;
use kernel::types::Opaque;

/// A `struct task_struct`.
#[repr(transparent)]
pub(crate) struct Task(Opaque<bindings::task_struct>);

// SAFETY: A pointer to a live task; tracepoints that pass one pass no NULL.
unsafe impl Arg for &Task {
    type Raw = *mut bindings::task_struct;

    #[inline(always)]
    fn task(&self) -> Option<&Task> {
        Some(self)
    }
}

// SAFETY: A pointer to a live task, or NULL.
unsafe impl Arg for Option<&Task> {
    type Raw = *mut bindings::task_struct;

    #[inline(always)]
    fn task(&self) -> Option<&Task> {
        *self
    }
}

impl Task {
    /// The kernel's own.
    #[inline(always)]
    pub(in crate::sys) fn as_ptr(&self) -> *const bindings::task_struct {
        self.0.get()
    }

    /// Bytes of a name, without the NUL.
    pub(super) const NAME_MAX: usize = 15;

    /// The task that runs this.
    #[inline(always)]
    pub(crate) fn current() -> CurrentTask {
        CurrentTask(PhantomData)
    }

    /// Its name, padded with NUL.
    #[inline(always)]
    pub(crate) fn comm(&self) -> [u8; 16] {
        // SAFETY: 16 bytes of a live task; a renaming at this moment may mix two names.
        unsafe {
            let comm = (&raw const (*self.0.get()).comm).cast::<[u8; 16]>();
            if u64::IS_COMPILED {
                return comm.read();
            }
            // The compiler would read byte by byte, because an array of bytes may have any address.
            let words = [u64::load(comm.cast()), u64::load(comm.cast::<u8>().add(8))];
            (&raw const words).cast::<[u8; 16]>().read()
        }
    }

    /// Thread ids are below this one (`PID_MAX_LIMIT`).
    pub(crate) const TID_LIMIT: u32 = 1 << 22;

    /// Thread id in the initial namespace.
    #[inline(always)]
    pub(crate) fn tid(&self) -> i32 {
        // SAFETY: A live task; never changes. The kernel allocates no larger ids, and the idle tasks have 0.
        unsafe {
            let tid = (*self.0.get()).pid;
            assert_unchecked((tid as u32) < Self::TID_LIMIT);
            tid
        }
    }

    /// Thread group id: the process id in the initial namespace.
    #[inline(always)]
    pub(crate) fn tgid(&self) -> i32 {
        // SAFETY: A live task; never changes but in exec.
        unsafe { (*self.0.get()).tgid }
    }

    /// How much likelier the OOM killer chooses its process: -1000 to 1000.
    #[inline(always)]
    pub(crate) fn oom_score_adj(&self) -> i16 {
        // SAFETY: A live task has its `signal_struct` as long as it lives; read once.
        unsafe { (&raw const (*(*self.0.get()).signal).oom_score_adj).read_volatile() }
    }

    /// Priority as LTTng shows it: real-time ones are negative, 0 to 39 are the nice values -20 to 19.
    #[inline(always)]
    pub(crate) fn prio(&self) -> i32 {
        self.number(TaskNumber::PRIO)
    }

    /// The CPU it is on.
    #[inline(always)]
    pub(crate) fn cpu(&self) -> i32 {
        self.number(TaskNumber::CPU)
    }

    /// The status with which it ends, as wait(2) tells it.
    #[inline(always)]
    pub(crate) fn exit_code(&self) -> i32 {
        self.number(TaskNumber::EXIT_CODE)
    }

    /// Number of its calls whose returns were not traced for lack of room.
    #[inline(always)]
    pub(crate) fn graph_overrun(&self) -> u32 {
        self.number(TaskNumber::GRAPH_OVERRUN) as u32
    }

    /// Whether it is asked to call the scheduler, and how soon: bit 0, at the next preemption point; bit 1
    /// (lazily), at the next tick or return to user space. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn need_reschedule(&self) -> u8 {
        // SAFETY: A live task.
        unsafe { task::need_reschedule(self.0.get()) }
    }

    /// The state it is left in by a CPU that found it in `state` (`TASK_...`), as tracers show
    /// it: one bit of `TASK_REPORT`, 0 if it runs on, `TASK_REPORT_MAX` if it was preempted.
    #[inline(always)]
    pub(crate) fn left_state(&self, preempted: bool, state: u32) -> i64 {
        use bindings::{TASK_FROZEN, TASK_IDLE, TASK_NOLOAD, TASK_REPORT, TASK_RTLOCK_WAIT};
        if preempted {
            return bindings::TASK_REPORT_MAX.into();
        }
        // SAFETY: A live task; read once.
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
        // The highest bit alone. There is one, or none, but for rare combinations.
        if shown & shown.wrapping_sub(1) != 0 {
            shown = 1u32.wrapping_shl(31u32.wrapping_sub(shown.leading_zeros()));
        }
        shown.into()
    }

    /// Thread id in the namespace that it is in; 0 if it has none any more.
    #[inline(always)]
    pub(crate) fn tid_in_namespace(&self, _guard: &NoPreempt) -> i32 {
        // SAFETY: A live task.
        let pid = unsafe { (&raw const (*self.0.get()).thread_pid).read_volatile() };
        // SAFETY: A task's pid is not freed while the guard makes this an RCU reader.
        unsafe { innermost(pid) }.map_or(0, |number| number.nr)
    }

    /// Process id in the namespace that it is in; 0 if it has none any more.
    #[inline(always)]
    pub(crate) fn pid_in_namespace(&self, _guard: &NoPreempt) -> i32 {
        const TGID: usize = bindings::pid_type_PIDTYPE_TGID as usize;
        // SAFETY: A live task has its `signal_struct` as long as it lives.
        let pid = unsafe { (&raw const (*(*self.0.get()).signal).pids[TGID]).read_volatile() };
        // SAFETY: As for `tid_in_namespace`.
        unsafe { innermost(pid) }.map_or(0, |number| number.nr)
    }

    /// The inode number of the process id namespace it is in; 0 if it has none any more.
    #[inline(always)]
    pub(crate) fn pid_namespace(&self, _guard: &NoPreempt) -> u32 {
        // SAFETY: A live task.
        let pid = unsafe { (&raw const (*self.0.get()).thread_pid).read_volatile() };
        // SAFETY: As for `tid_in_namespace`; a pid holds its namespaces.
        unsafe {
            innermost(pid)
                .and_then(|number| number.ns.as_ref())
                .map_or(0, |namespace| namespace.ns.inum)
        }
    }
}

/// A pid's number in the innermost of its namespaces; [`None`] for NULL.
///
/// # Safety
///
/// `pid` must be NULL or point to a live pid.
#[inline(always)]
unsafe fn innermost<'a>(pid: *const bindings::pid) -> Option<&'a bindings::upid> {
    if pid.is_null() {
        return None;
    }
    // SAFETY: By the contract; a pid has `level + 1` numbers.
    unsafe {
        let numbers = (&raw const (*pid).numbers).cast::<bindings::upid>();
        numbers.add((*pid).level as usize).as_ref()
    }
}

/// The task that runs the code that has this. It does not end before that code does, and the
/// code takes this nowhere else.
pub(crate) struct CurrentTask(PhantomData<*mut ()>);

impl Deref for CurrentTask {
    type Target = Task;

    #[inline(always)]
    fn deref(&self) -> &Task {
        // SAFETY: A live task, see the type; a `Task` is transparent.
        unsafe { &*task::current().cast::<Task>() }
    }
}

impl CurrentTask {
    /// The id of its cgroup (v2), which is the inode number of that one's directory; 0 if the
    /// kernel has no cgroups. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn cgroup_id(&self, _guard: &NoPreempt) -> u64 {
        // SAFETY:
        // - A live task has a set of cgroups, which is not freed while the guard makes this an RCU
        //   reader.
        // - The set holds its cgroups, and each of these its node.
        #[cfg(CONFIG_CGROUPS)]
        unsafe {
            let set = (&raw const (*self.as_ptr()).cgroups).read_volatile();
            (*(*(*set).dfl_cgrp).kn).id
        }
        #[cfg(not(CONFIG_CGROUPS))]
        0
    }

    /// Whether it is in a system call as a 32-bit program makes it (`in_ia32_syscall()`).
    #[inline(always)]
    pub(crate) fn is_in_compat_call(&self) -> bool {
        // SAFETY: A live task; what is read here only it writes.
        unsafe { task::is_in_compat_call(self.as_ptr()) }
    }
}

/// A `struct pid`: a process id, in each of the namespaces that it is known in.
#[repr(transparent)]
pub(crate) struct Pid(Opaque<bindings::pid>);

// SAFETY: A pointer to a live pid, or NULL.
unsafe impl Arg for Option<&Pid> {
    type Raw = *mut bindings::pid;
}

impl Pid {
    /// The number in the initial namespace.
    #[inline(always)]
    pub(crate) fn number(&self) -> i32 {
        // SAFETY: A live pid; it has one number at least, which never changes.
        unsafe {
            (&raw const (*self.0.get()).numbers)
                .cast::<bindings::upid>()
                .read()
                .nr
        }
    }
}
