// SPDX-License-Identifier: GPL-2.0

//! x86-64.

pub mod calls;
pub mod clock;
#[cfg(MODULE)]
mod holder;
#[cfg(MODULE)]
pub mod percpu;
#[cfg(MODULE)]
pub(super) mod preempt;
#[cfg(MODULE)]
pub mod registers;
#[cfg(MODULE)]
pub mod task;
#[cfg(MODULE)]
mod unaligned;
pub(super) mod word;

/// The number of the processor in ELF files (`e_machine`).
pub const ELF_MACHINE: u16 = 62;

/// The name that a trace has for the processor, as uname(2). Traces of x86-64 have none.
pub const NAME: Option<&str> = None;
