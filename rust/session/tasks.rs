// SPDX-License-Identifier: GPL-2.0

//! Choosing whose events a session records.

use super::Session;
use crate::event::tasks::{Following, TaskSet, Tasks};
use crate::sys::debugfs::text::Text;
use crate::sys::rcu::RcuArc;
use core::fmt::Write;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Which of the two sets.
#[derive(Clone, Copy)]
pub(crate) enum TaskChoice {
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
    /// Puts tasks into a set, by their ids, or has them `replace` what is in it; without any it is
    /// no set any more. In an active trace at once. On failure nothing has changed.
    pub(crate) fn choose_tasks(
        &self,
        choice: TaskChoice,
        file: &str,
        ids: &str,
        replace: bool,
    ) -> Result {
        let _control = self.control.lock();
        let place = choice.set(&self.tasks);
        let before = place.get_arc();
        let set = TaskSet::new()?;
        let mut any = false;
        for id in before
            .iter()
            .filter(|_| !replace)
            .flat_map(|set| set.iter())
        {
            set.set(id, true);
            any = true;
        }
        for word in ids.split_ascii_whitespace() {
            match word.parse() {
                Ok(id) if id < TaskSet::LIMIT => set.set(id, true),
                _ => return Err(self.refuse(fmt!("{file}: '{word}' is no thread id"))),
            }
            any = true;
        }
        let set = if any {
            Some(Arc::new(set, GFP_KERNEL)?)
        } else {
            None
        };
        place.replace(set);
        self.record_all().inspect_err(|_| place.replace(before))
    }

    /// How many tasks are in a set.
    pub(crate) fn task_count(&self, choice: TaskChoice) -> usize {
        let set = choice.set(&self.tasks).get_arc();
        set.map_or(0, |set| set.iter().count())
    }

    /// Writes the ids of a set's tasks, one a line.
    pub(crate) fn write_tasks(&self, choice: TaskChoice, out: &mut Text) -> Result {
        if let Some(set) = choice.set(&self.tasks).get_arc() {
            set.iter().try_for_each(|id| writeln!(out, "{id}"))?;
        }
        Ok(())
    }

    /// Whether the sets follow forks and exits.
    pub(crate) fn follows_tasks(&self) -> bool {
        self.following.lock().is_some()
    }

    /// Has the sets follow forks and exits from now on, or not.
    pub(crate) fn follow_tasks(&self, follow: bool) -> Result {
        let _control = self.control.lock();
        if follow == self.follows_tasks() {
            return Ok(());
        }
        let following = if follow {
            Some(Following::new(&self.tasks)?)
        } else {
            None
        };
        // Dropped without the lock: it waits.
        let before = core::mem::replace(&mut *self.following.lock(), following);
        drop(before);
        Ok(())
    }
}
