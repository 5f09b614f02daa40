// SPDX-License-Identifier: GPL-2.0

//! Numbers in a task that are read without conversion, except for their zero point.

use super::Task;
use crate::sys::bindings::task_struct;
use core::mem::offset_of;

/// A number in a field of a task.
///
/// # Invariants
///
/// At `offset` bytes in a `task_struct` there is a field of 32 bits.
#[derive(Clone, Copy)]
pub(crate) struct TaskNumber {
    offset: u32,
    /// The field's value that readers see as 0.
    zero: i32,
}

// INVARIANT: Each constant is the offset of a field of that size.
impl TaskNumber {
    pub(crate) const TID: Self = Self::new(offset_of!(task_struct, pid), 0);
    pub(crate) const PID: Self = Self::new(offset_of!(task_struct, tgid), 0);
    pub(crate) const CPU: Self = Self::new(offset_of!(task_struct, thread_info.cpu), 0);
    /// As LTTng shows it: 0 is the lowest real-time priority, 20 the default.
    pub(crate) const PRIO: Self = Self::new(offset_of!(task_struct, prio), 100);
    /// From -20 to 19.
    pub(crate) const NICE: Self = Self::new(offset_of!(task_struct, static_prio), 120);

    /// Number of unfinished calls whose returns are traced, less 1; -1 if there is none.
    pub(crate) const GRAPH_DEPTH: Self = Self::new(offset_of!(task_struct, curr_ret_depth), 0);
    /// Number of calls whose returns were not traced, because too many calls were unfinished.
    pub(crate) const GRAPH_OVERRUN: Self = Self::new(offset_of!(task_struct, trace_overrun), 0);

    const fn new(offset: usize, zero: i32) -> Self {
        Self {
            offset: offset as u32,
            zero,
        }
    }
}

impl Task {
    /// The value of a number.
    #[inline(always)]
    pub(crate) fn number(&self, number: TaskNumber) -> i32 {
        let task = self.0.get().cast::<u8>();
        // SAFETY: The task is live. By the invariant it has a field of 32 bits there, which is read once.
        unsafe {
            task.add(number.offset as usize)
                .cast::<i32>()
                .read_volatile()
        }
        .wrapping_sub(number.zero)
    }
}
