// SPDX-License-Identifier: GPL-2.0

//! x86-64.

pub(crate) mod clock;
pub(crate) mod percpu;
pub(crate) mod preempt;
pub(crate) mod registers;
pub(crate) mod task;
pub(crate) mod word;
