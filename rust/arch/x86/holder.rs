// SPDX-License-Identifier: GPL-2.0

//! The places of the running task and of the preemption count: per-CPU variables of their own, or the fields of one
//! per-CPU structure. `sys/features.c` finds out which.

#[cfg(not(kernel_has = "percpu_current"))]
use bindings::pcpu_hot__bindgen_ty_1__bindgen_ty_1 as Hot;
#[cfg(not(kernel_has = "percpu_current"))]
use core::mem::offset_of;
use kernel::bindings;

/// The per-CPU variable with the running task, and the task's place in it.
#[cfg(kernel_has = "percpu_current")]
pub(super) use bindings::current_task as TASK;
#[cfg(not(kernel_has = "percpu_current"))]
pub(super) use bindings::pcpu_hot as TASK;
#[cfg(kernel_has = "percpu_current")]
pub(super) const TASK_AT: usize = 0;
#[cfg(not(kernel_has = "percpu_current"))]
pub(super) const TASK_AT: usize = offset_of!(Hot, current_task);

/// The per-CPU variable with the preemption count, and the count's place in it.
#[cfg(kernel_has = "percpu_current")]
pub(super) use bindings::__preempt_count as COUNT;
#[cfg(not(kernel_has = "percpu_current"))]
pub(super) use bindings::pcpu_hot as COUNT;
#[cfg(kernel_has = "percpu_current")]
pub(super) const COUNT_AT: usize = 0;
#[cfg(not(kernel_has = "percpu_current"))]
pub(super) const COUNT_AT: usize = offset_of!(Hot, preempt_count);
