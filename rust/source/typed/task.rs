// SPDX-License-Identifier: GPL-2.0

//! Events of tasks, whatever schedules them.

use crate::sys::args::{NewName, Task};

event! {
    /// A task gets another name: from itself, from a thread of its process, or because it executes a program.
    TASK_RENAME: task "task_rename" = task_rename(task: &Task, comm: NewName) {
        tid: i32 = task.tid(),
        oldcomm: [u8; 16] = task.comm(),
        oom_score_adj: i16 = task.oom_score_adj(),
    }
    string newcomm = comm.bytes()
}
