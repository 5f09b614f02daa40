// SPDX-License-Identifier: GPL-2.0

//! Events of the scheduler.

use crate::sys::args::Task;

event! {
    /// A CPU goes from one task to another.
    SCHED_SWITCH: sched "sched_switch" =
        sched_switch(_preempt: bool, prev: &Task, next: &Task, prev_state: u32)
    {
        prev_comm: [u8; 16] = prev.comm(),
        prev_tid: i32 = prev.tid(),
        prev_prio: i32 = prev.prio(),
        prev_state: i64 = i64::from(prev_state),
        next_comm: [u8; 16] = next.comm(),
        next_tid: i32 = next.tid(),
        next_prio: i32 = next.prio(),
    }
}
