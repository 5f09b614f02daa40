// SPDX-License-Identifier: GPL-2.0

//! Numbers of a task that are read as they are.

use super::Task;
use crate::sys::bindings::task_struct;
use core::mem::offset_of;

/// A field of a task.
///
/// # Invariants
///
/// At `offset` bytes in a `task_struct` is a field of 32 bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskWord {
    offset: u32,
}

/// A number that a task has in a field.
#[derive(Clone, Copy)]
pub(crate) struct TaskNumber {
    word: TaskWord,
    /// The value of the field that readers get as 0.
    zero: i32,
}

impl TaskWord {
    /// Thread id.
    pub(crate) const TID: Self = TaskNumber::TID.word;
}

impl TaskNumber {
    // INVARIANT, of all: The offset of a field of that size.
    pub(crate) const TID: Self = Self::new(offset_of!(task_struct, pid), 0);
    pub(crate) const PID: Self = Self::new(offset_of!(task_struct, tgid), 0);
    pub(crate) const CPU: Self = Self::new(offset_of!(task_struct, thread_info.cpu), 0);
    /// As LTTng shows it: real-time priorities are negative, 0 to 39 are the nice values -20 to 19.
    pub(crate) const PRIO: Self = Self::new(offset_of!(task_struct, prio), 100);
    /// -20 to 19.
    pub(crate) const NICE: Self = Self::new(offset_of!(task_struct, static_prio), 120);

    /// The status with which the task ends, as wait(2) tells it.
    pub(crate) const EXIT_CODE: Self = Self::new(offset_of!(task_struct, exit_code), 0);
    /// Number of calls whose returns were not traced, because too many were running.
    pub(crate) const GRAPH_OVERRUN: Self = Self::new(offset_of!(task_struct, trace_overrun), 0);

    const fn new(offset: usize, zero: i32) -> Self {
        let offset = offset as u32;
        Self {
            word: TaskWord { offset },
            zero,
        }
    }

    /// The field, if it has the number as it is.
    pub(crate) fn word(self) -> Option<TaskWord> {
        (self.zero == 0).then_some(self.word)
    }
}

impl Task {
    /// One of its numbers.
    #[inline(always)]
    pub(crate) fn number(&self, number: TaskNumber) -> i32 {
        self.word(number.word).wrapping_sub(number.zero)
    }

    /// One of its fields, as it is.
    #[inline(always)]
    pub(crate) fn word(&self, TaskWord { offset }: TaskWord) -> i32 {
        let task = self.0.get().cast::<u8>();
        // SAFETY: A live task, with a field of 32 bits there by the invariant; read once.
        unsafe { task.add(offset as usize).cast::<i32>().read_volatile() }
    }
}
