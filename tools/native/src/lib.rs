// SPDX-License-Identifier: GPL-2.0

//! The module's record path in user space, so that it can be timed on the real processor.
//!
//! Nothing of the path is written again: it is the module's own (rust/record, on rust/ring), and
//! so are its instructions (rust/arch: cmpxchg, sub and inc without a LOCK prefix, `lock cmpxchg`
//! between CPUs). [`platform`] is what they run on here: a thread that is pinned to a CPU is the
//! buffer's CPU, its signal handlers are the interrupts, membarrier(2) is the interrupt that
//! Algorithm 6 sends.
//!
//! [`writer`] has what is measured, benches/native.rs measures it, scripts/bench-native does all.
//!
//! What differs from the module: the compiler may use vector registers here, there are no return
//! thunks, and what is the CPU's own is found without a segment register.
//!
//! The module's instructions need an unstable feature that the compiler has had for long
//! (`asm_goto`), so this is empty but with the feature `measure`, which scripts/bench-native asks
//! for.

#![cfg(all(feature = "measure", target_arch = "x86_64"))]

mod channel;
pub mod machine;
mod memcpy;
mod platform;
mod rtrace;
mod ust;
pub mod writer;
