// SPDX-License-Identifier: GPL-2.0

//! The module's record path in user space, to measure its time on the real processor.
//!
//! No part of the path is a copy. It is the module's own code (rust/record, on rust/ring) with the module's own
//! instructions (rust/arch: cmpxchg, sub and inc without a LOCK prefix, `lock cmpxchg` between CPUs).
//! [`platform`] is their platform here:
//! - A thread that is pinned to a CPU stands for the buffer's CPU.
//! - Its signal handlers stand for interrupts.
//! - membarrier(2) stands for the interrupt that Algorithm 6 sends.
//!
//! [`writer`] has the writers to measure, benches/native.rs measures them, and scripts/bench native runs
//! everything.
//!
//! Differences from the module: the compiler may use vector registers here, there are no return thunks, and
//! per-CPU data is found without a segment register.
//!
//! The module's instructions need an unstable feature of the compiler (`asm_goto`). So this crate is empty
//! without the feature `measure`, which scripts/bench native sets.

#![cfg(all(feature = "measure", target_arch = "x86_64"))]

pub mod cases;
mod channel;
pub mod machine;
mod memcpy;
mod platform;
mod rtrace;
mod ust;
pub mod writer;
