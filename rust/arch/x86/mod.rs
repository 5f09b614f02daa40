// SPDX-License-Identifier: GPL-2.0

//! x86-64.

pub mod clock;
#[cfg(MODULE)]
pub mod percpu;
#[cfg(MODULE)]
pub mod preempt;
#[cfg(MODULE)]
pub mod registers;
#[cfg(MODULE)]
pub mod task;
pub mod word;
