// SPDX-License-Identifier: GPL-2.0

//! The selection of the tasks whose events a session records.

use crate::probe::tasks::{CgroupSet, Following, TaskSet, Tasks};
use crate::session::Session;
use crate::sys::args::Task;
use crate::sys::debugfs::text::Text;
use crate::sys::rcu::RcuArc;
use core::fmt::Write;
use kernel::prelude::*;
use kernel::sync::Arc;

/// A choice of one of the two sets.
#[derive(Clone, Copy)]
pub(in crate::session) enum TaskChoice {
    /// Only these tasks.
    Only,
    /// Not these tasks.
    Not,
}

impl TaskChoice {
    fn set(self, tasks: &Tasks) -> &RcuArc<TaskSet> {
        match self {
            Self::Only => &tasks.only,
            Self::Not => &tasks.not,
        }
    }
}

impl Session {
    /// Adds tasks to a set by their ids, or, with `replace`, replaces the set. Without ids, the set is removed.
    /// An active trace follows at once. On failure nothing changes.
    pub(in crate::session) fn choose_tasks(
        &self,
        choice: TaskChoice,
        file: &str,
        ids: &str,
        replace: bool,
    ) -> Result {
        let _control = self.control.lock();
        let place = choice.set(&self.tasks);
        let mut parsed = KVec::new();
        for word in ids.split_ascii_whitespace() {
            match word.parse() {
                Ok(id) if id < Task::TID_LIMIT => parsed.push(id, GFP_KERNEL)?,
                _ => return Err(self.refuse(fmt!("{file}: '{word}' is not a thread id"))),
            }
        }
        let before = place.get_arc();
        if let (Some(set), false) = (&before, replace) {
            // The set is changed in place, because it may follow forks at the same time.
            parsed.iter().for_each(|&id| set.choose(id));
            return self.tasks_changed();
        }
        let set = match parsed.is_empty() {
            true => None,
            false => Some(Arc::new(TaskSet::new()?, GFP_KERNEL)?),
        };
        if let Some(set) = &set {
            parsed.iter().for_each(|&id| set.choose(id));
        }
        place.replace(set);
        self.choose_tasks_of_maps();
        let followed = self.record_all().and_then(|()| self.tasks_changed());
        followed.inspect_err(|_| {
            place.replace(before);
            // The breakpoints are needed at most where they are.
            let _ = self.tasks_changed();
        })
    }

    /// Moves the probes of programs to the memory of the tasks that are chosen now. `control` must be held.
    fn tasks_changed(&self) -> Result {
        self.maps_follow_tasks()?;
        match self.active() {
            Some((_, recording)) => recording.follow_tasks(),
            None => Ok(()),
        }
    }

    /// Removes all tasks from a set. No trace is recorded.
    pub(in crate::session) fn clear_tasks(&self, choice: TaskChoice) -> Result {
        choice.set(&self.tasks).replace(None);
        self.maps_follow_tasks()
    }

    /// Number of tasks in a set.
    pub(in crate::session) fn task_count(&self, choice: TaskChoice) -> usize {
        let set = choice.set(&self.tasks).get_arc();
        set.map_or(0, |set| set.iter().count())
    }

    /// Writes the ids of a set's tasks, one per line.
    pub(in crate::session) fn write_tasks(&self, choice: TaskChoice, out: &mut Text) -> Result {
        if let Some(set) = choice.set(&self.tasks).get_arc() {
            set.iter().try_for_each(|id| writeln!(out, "{id}"))?;
        }
        Ok(())
    }

    /// Adds cgroups to the set whose tasks' events are recorded, by their paths, one per line; or, with
    /// `replace`, replaces the set. Without paths, the set is removed. An active trace follows at once. On
    /// failure nothing changes.
    pub(in crate::session) fn choose_cgroups(&self, paths: &str, replace: bool) -> Result {
        let _control = self.control.lock();
        let place = &self.tasks.cgroups;
        let before = place.get_arc();
        let mut set = match &before {
            Some(known) if !replace => known.try_clone()?,
            _ => CgroupSet::NONE,
        };
        for path in paths.lines().filter(|path| !path.is_empty()) {
            set.add(path).inspect_err(|&error| {
                let why = match error {
                    ENOENT => "there is no such cgroup",
                    ENOTDIR => "this is a file in a cgroup; its directory is needed",
                    ENOSPC => "there are too many",
                    _ => "it cannot be used",
                };
                self.refuse(fmt!("set_event_cgroup: '{path}': {why}"));
            })?;
        }
        let set = match set.paths().count() {
            0 => None,
            _ => Some(Arc::new(set, GFP_KERNEL)?),
        };
        place.replace(set);
        self.choose_tasks_of_maps();
        self.record_all().inspect_err(|_| place.replace(before))
    }

    /// Removes all cgroups from the set. No trace is recorded.
    pub(in crate::session) fn clear_cgroups(&self) -> Result {
        self.tasks.cgroups.replace(None);
        Ok(())
    }

    /// Number of cgroups in the set.
    pub(in crate::session) fn cgroup_count(&self) -> usize {
        let set = self.tasks.cgroups.get_arc();
        set.map_or(0, |set| set.paths().count())
    }

    /// Writes the paths of the set's cgroups, one per line.
    pub(in crate::session) fn write_cgroups(&self, out: &mut Text) -> Result {
        if let Some(set) = self.tasks.cgroups.get_arc() {
            for path in set.paths() {
                writeln!(out, "{}", path.to_str()?)?;
            }
        }
        Ok(())
    }

    /// Whether the sets follow forks and exits.
    pub(in crate::session) fn follows_tasks(&self) -> bool {
        self.following.lock().is_some()
    }

    /// Sets whether the sets follow forks and exits.
    pub(in crate::session) fn follow_tasks(&self, follow: bool) -> Result {
        if follow == self.follows_tasks() {
            return Ok(());
        }
        let following = if follow {
            Some(Following::new(&self.tasks)?)
        } else {
            None
        };
        // Dropped without the lock, because the drop waits.
        let before = core::mem::replace(&mut *self.following.lock(), following);
        drop(before);
        Ok(())
    }
}
