// SPDX-License-Identifier: GPL-2.0

//! Sets of the tasks whose events are recorded, which may follow forks and exits; and sets of cgroups.

use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::sys::args::{CloneFlags, Task};
use crate::sys::bindings;
use crate::sys::cgroup::Cgroup;
use crate::sys::rcu::RcuArc;
use crate::sys::threads::{self, ProcessMemory};
use crate::sys::tracepoint::{Attachments, Handler, Rank, Tracepoints};
use core::convert::Infallible;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::Arc;
use pin_init::init_array_from_fn;

/// A set of tasks, by thread id in the initial namespace.
pub(crate) struct TaskSet {
    words: VBox<[SharedWord; WORDS]>,
    /// Non-zero if a chosen task shares the memory of another process, so that the memory does not lead to it.
    has_strays: SharedWord,
}

const WORDS: usize = Task::TID_LIMIT as usize / 64;

impl TaskSet {
    /// An empty set. May sleep.
    pub(crate) fn new() -> Result<Self> {
        let set = VBox::init::<Infallible>(init_array_from_fn(|_| SharedWord::new(0)), GFP_KERNEL)?;
        Ok(Self {
            words: set,
            has_strays: SharedWord::new(0),
        })
    }

    /// Adds the task with this id, which a user has chosen. Process context.
    pub(crate) fn choose(&self, tid: u32) {
        if !threads::owns_memory(tid) {
            self.has_strays.store(1);
        }
        self.set(tid, true);
    }

    /// Whether a task with this memory can be in the set. Process context.
    fn may_have(&self, memory: &ProcessMemory<'_>) -> bool {
        self.has_strays.load() != 0 || memory.has_thread(|tid| self.has(tid))
    }

    /// Adds or removes the task with this id. Any CPU, any context.
    #[inline(always)]
    pub(crate) fn set(&self, tid: u32, member: bool) {
        let Some(word) = self.words.get(tid as usize / 64) else {
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

    /// Whether the set has the task with this id. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn has(&self, tid: i32) -> bool {
        let tid = tid as u32;
        let word = self.words.get(tid as usize / 64);
        word.is_some_and(|word| word.load() & 1_u64.wrapping_shl(tid % 64) != 0)
    }

    /// The ids in the set, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..)
            .step_by(64)
            .zip(&*self.words)
            .flat_map(|(first, word)| {
                let word = word.load();
                (0..64)
                    .filter(move |bit| word & 1 << bit != 0)
                    .map(move |bit| first + bit)
            })
    }
}

/// A set of cgroups, each with the path by which it was selected.
pub(crate) struct CgroupSet(KVec<(Arc<CString>, Arc<Cgroup>)>);

impl CgroupSet {
    /// Maximum number of cgroups. Each event tests all of them.
    pub(crate) const MAX: usize = 64;

    /// The empty set.
    pub(crate) const NONE: Self = Self(KVec::new());

    /// A copy.
    pub(crate) fn try_clone(&self) -> Result<Self> {
        let mut set = KVec::with_capacity(self.0.len(), GFP_KERNEL)?;
        for (path, cgroup) in &self.0 {
            set.push((path.clone(), cgroup.clone()), GFP_KERNEL)?;
        }
        Ok(Self(set))
    }

    /// Adds the cgroup with this path, unless the set has it; see [`Cgroup::find`]. `ENOSPC`: there are too
    /// many. May sleep.
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

    /// The paths, in the order in which they were added.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &CStr> {
        self.0.iter().map(|(path, _)| &***path)
    }

    /// Whether a task is in one of them, or in a descendant. Any context, NMI included.
    #[inline(always)]
    fn has(&self, task: &Task, guard: &NoPreempt) -> bool {
        self.0.iter().any(|(_, cgroup)| cgroup.has(task, guard))
    }
}

/// The tasks whose events a session records.
pub(crate) struct Tasks {
    /// If there is a set: only these tasks.
    pub(crate) only: RcuArc<TaskSet>,
    /// If there is a set: not these tasks.
    pub(crate) not: RcuArc<TaskSet>,
    /// If there is a set: only tasks in these cgroups.
    pub(crate) cgroups: RcuArc<CgroupSet>,
}

impl Tasks {
    /// All tasks.
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

    /// Whether the sets of tasks allow events of a task. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn wants(&self, tid: i32, guard: &NoPreempt) -> bool {
        self.only.get(guard).is_none_or(|only| only.has(tid))
            && !self.not.get(guard).is_some_and(|not| not.has(tid))
    }

    /// Whether the set of cgroups allows events of the current task, or events about one of these tasks. Any context,
    /// NMI included.
    #[inline(always)]
    pub(crate) fn wants_cgroup(&self, about: &[Option<&Task>], guard: &NoPreempt) -> bool {
        let Some(cgroups) = self.cgroups.get(guard) else {
            return true;
        };
        let mut about = about.iter().flatten();
        cgroups.has(&Task::current(), guard) || about.any(|task| cgroups.has(task, guard))
    }

    /// Whether events of a task with this memory can be wanted. The set of cgroups does not decide, because tasks change
    /// their cgroup. Process context.
    pub(crate) fn may_want(&self, memory: &ProcessMemory<'_>, guard: &NoPreempt) -> bool {
        let only = self.only.get(guard);
        only.is_none_or(|only| only.may_have(memory))
    }

    fn for_each_set(&self, mut change: impl FnMut(&TaskSet)) {
        let guard = NoPreempt::new();
        self.only.get(&guard).into_iter().for_each(&mut change);
        self.not.get(&guard).into_iter().for_each(&mut change);
    }
}

/// Updates sets of tasks: adds the children of their members, and removes tasks that end. The drop stops that.
pub(crate) struct Following {
    _hooks: Attachments<Tasks>,
}

impl Following {
    /// Starts the updates. `ENOENT`: the kernel lacks the tracepoints. May sleep.
    pub(crate) fn new(tasks: &Arc<Tasks>) -> Result<Self> {
        let tracepoints = Tracepoints::new()?;
        let mut hooks = Attachments::new();
        for (name, handler) in [("task_newtask", BEGIN), ("sched_process_free", FREE)] {
            let tracepoint = tracepoints.find(name).ok_or(ENOENT)?;
            hooks.attach(tracepoint, handler, tasks.clone(), Rank::Record)?;
        }
        Ok(Self { _hooks: hooks })
    }
}

const BEGIN: Handler<Tasks> = Handler::new2(begin, bindings::__traceiter_task_newtask);
const FREE: Handler<Tasks> = Handler::new1(free, bindings::__traceiter_sched_process_free);

/// Handles a new task, also one that the kernel makes for the current task, such as a worker of io_uring. For such a task
/// there is no `sched_process_fork`.
extern "C" fn begin(tasks: &Tasks, task: &Task, _: CloneFlags) {
    let parent = Task::current().tid();
    tasks.for_each_set(|set| {
        if set.has(parent) {
            set.set(task.tid() as u32, true);
        }
    });
}

extern "C" fn free(tasks: &Tasks, task: &Task) {
    tasks.for_each_set(|set| set.set(task.tid() as u32, false));
}
