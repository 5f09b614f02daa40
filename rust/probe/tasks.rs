// SPDX-License-Identifier: GPL-2.0

//! Whose events are recorded: sets of tasks, which may follow forks and exits, and of cgroups.

use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::sys::args::Task;
use crate::sys::bindings;
use crate::sys::cgroup::Cgroup;
use crate::sys::rcu::RcuArc;
use crate::sys::tracepoint::{Attachments, Handler, Tracepoints};
use core::convert::Infallible;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::Arc;
use pin_init::init_array_from_fn;

/// A set of tasks, by thread id in the initial namespace.
pub(crate) struct TaskSet(VBox<[SharedWord; WORDS]>);

const WORDS: usize = Task::TID_LIMIT as usize / 64;

impl TaskSet {
    /// None. May sleep.
    pub(crate) fn new() -> Result<Self> {
        let set = VBox::init::<Infallible>(init_array_from_fn(|_| SharedWord::new(0)), GFP_KERNEL)?;
        Ok(Self(set))
    }

    /// Puts the task with this id in, or out. Any CPU, any context.
    #[inline(always)]
    pub(crate) fn set(&self, tid: u32, member: bool) {
        let Some(word) = self.0.get(tid as usize / 64) else {
            return;
        };
        let bit = 1_u64.wrapping_shl(tid % 64);
        loop {
            let old = word.load();
            let new = if member { old | bit } else { old & !bit };
            if old == new || word.compare_exchange(old, new) {
                return;
            }
        }
    }

    /// Whether the task with this id is in it. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn has(&self, tid: i32) -> bool {
        let tid = tid as u32;
        let word = self.0.get(tid as usize / 64);
        word.is_some_and(|word| word.load() & 1_u64.wrapping_shl(tid % 64) != 0)
    }

    /// The ids in the set, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).step_by(64).zip(&*self.0).flat_map(|(first, word)| {
            let word = word.load();
            (0..64)
                .filter(move |bit| word & 1 << bit != 0)
                .map(move |bit| first + bit)
        })
    }
}

/// A set of cgroups, each with the path by which it was chosen.
pub(crate) struct CgroupSet(KVec<(Arc<CString>, Arc<Cgroup>)>);

impl CgroupSet {
    /// The most that there can be: each event asks for all.
    pub(crate) const MAX: usize = 64;

    /// None.
    pub(crate) const NONE: Self = Self(KVec::new());

    /// The same.
    pub(crate) fn try_clone(&self) -> Result<Self> {
        let mut set = KVec::with_capacity(self.0.len(), GFP_KERNEL)?;
        for (path, cgroup) in &self.0 {
            set.push((path.clone(), cgroup.clone()), GFP_KERNEL)?;
        }
        Ok(Self(set))
    }

    /// Puts in the one with this path, if it is not in it; see [`Cgroup::find`]. `ENOSPC`: there are
    /// too many. May sleep.
    pub(crate) fn add(&mut self, path: &str) -> Result {
        let path = CString::try_from_fmt(fmt!("{path}"))?;
        let cgroup = Cgroup::find(&path)?;
        if self.0.iter().any(|(_, known)| known.is(&cgroup)) {
            return Ok(());
        }
        if self.0.len() == Self::MAX {
            return Err(ENOSPC);
        }
        let (path, cgroup) = (Arc::new(path, GFP_KERNEL)?, Arc::new(cgroup, GFP_KERNEL)?);
        self.0.push((path, cgroup), GFP_KERNEL)?;
        Ok(())
    }

    /// The paths, in the order in which they were put in.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &CStr> {
        self.0.iter().map(|(path, _)| &***path)
    }

    /// Whether the task that runs this is in one of them, or below. Any context, NMI included.
    #[inline(always)]
    fn has_current(&self, guard: &NoPreempt) -> bool {
        self.0.iter().any(|(_, cgroup)| cgroup.has_current(guard))
    }
}

/// Whose events a session records.
pub(crate) struct Tasks {
    /// If it is there, only these tasks' events.
    pub(crate) only: RcuArc<TaskSet>,
    /// If it is there, not these tasks' events.
    pub(crate) not: RcuArc<TaskSet>,
    /// If it is there, only what tasks in these cgroups do.
    pub(crate) cgroups: RcuArc<CgroupSet>,
}

impl Tasks {
    /// Everybody's.
    pub(crate) const fn new() -> Self {
        Self {
            only: RcuArc::new(),
            not: RcuArc::new(),
            cgroups: RcuArc::new(),
        }
    }

    /// Whether there is a set of tasks.
    pub(crate) fn has_sets(&self) -> bool {
        let guard = NoPreempt::new();
        self.only.get(&guard).is_some() || self.not.get(&guard).is_some()
    }

    /// Whether there is a set of cgroups.
    pub(crate) fn has_cgroups(&self) -> bool {
        self.cgroups.get(&NoPreempt::new()).is_some()
    }

    /// Whether a task's events are recorded, as far as sets of tasks matter. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn wants(&self, tid: i32, guard: &NoPreempt) -> bool {
        self.only.get(guard).is_none_or(|only| only.has(tid))
            && !self.not.get(guard).is_some_and(|not| not.has(tid))
    }

    /// Whether anything is recorded of the task that runs this, by its cgroup. Any context, NMI
    /// included.
    #[inline(always)]
    pub(crate) fn wants_current_cgroup(&self, guard: &NoPreempt) -> bool {
        let cgroups = self.cgroups.get(guard);
        cgroups.is_none_or(|cgroups| cgroups.has_current(guard))
    }

    fn for_each_set(&self, mut change: impl FnMut(&TaskSet)) {
        let guard = NoPreempt::new();
        self.only.get(&guard).into_iter().for_each(&mut change);
        self.not.get(&guard).into_iter().for_each(&mut change);
    }
}

/// Has sets follow their tasks: what these fork is put in, and what ends is put out. Dropping it
/// ends that.
pub(crate) struct Following {
    _hooks: Attachments<Tasks>,
}

impl Following {
    /// Begins. `ENOENT`: the kernel has not the tracepoints. May sleep.
    pub(crate) fn new(tasks: &Arc<Tasks>) -> Result<Self> {
        let tracepoints = Tracepoints::new()?;
        let mut hooks = Attachments::new();
        for (name, handler) in [("sched_process_fork", FORK), ("sched_process_free", FREE)] {
            let tracepoint = tracepoints.find(name).ok_or(ENOENT)?;
            hooks.attach(tracepoint, handler, tasks.clone())?;
        }
        Ok(Self { _hooks: hooks })
    }
}

const FORK: Handler<Tasks> = Handler::new2(fork, bindings::__traceiter_sched_process_fork);
const FREE: Handler<Tasks> = Handler::new1(free, bindings::__traceiter_sched_process_free);

extern "C" fn fork(tasks: &Tasks, parent: &Task, child: &Task) {
    tasks.for_each_set(|set| {
        if set.has(parent.tid()) {
            set.set(child.tid() as u32, true);
        }
    });
}

extern "C" fn free(tasks: &Tasks, task: &Task) {
    tasks.for_each_set(|set| set.set(task.tid() as u32, false));
}
