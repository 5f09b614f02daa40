// SPDX-License-Identifier: GPL-2.0

//! The module's record path in user space, so that it can be timed on the real processor.
//!
//! Nothing of the path is written again. The module's own files are compiled here: the ring
//! (rust/ring, a crate), and, by `#[path]`, rust/sys/word.rs (the very instructions: cmpxchg,
//! sub and inc without a LOCK prefix, `lock cmpxchg` between CPUs), gate.rs and chosen.rs,
//! rust/probe.rs, and rust/channel/\*.rs with `Buffer::record_open` itself. What they need of the kernel has a stand-in:
//!
//! - [`kernel`](mod@standin) for the crate of that name;
//! - `sys` for rust/sys: a thread that is pinned to a CPU is the buffer's CPU, its signal handlers
//!   are the interrupts, membarrier(2) is the interrupt that Algorithm 6 sends;
//! - `channel` for rust/channel/mod.rs.
//!
//! [`writer`] has what is measured, benches/native.rs measures it, scripts/bench-native does all.
//!
//! What differs from the module: the compiler may use vector registers here, there are no return
//! thunks, and what is the CPU's own is found without a segment register.

//! The module is built with an unstable feature that the compiler has had for long (`asm_goto`),
//! so this is empty but with the feature `measure`, which scripts/bench-native asks for.

#![cfg(all(feature = "measure", target_arch = "x86_64"))]
#![allow(stable_features)]
#![feature(asm_goto)]

// The module's files say `kernel::` and `pin_init::`.
extern crate self as kernel;
extern crate self as pin_init;

pub(crate) use rtrace_abi as abi;
pub(crate) use rtrace_ring as ring;

mod channel;
pub mod machine;
mod memcpy;
#[path = "../../../rust/probe.rs"]
#[allow(dead_code)]
pub(crate) mod probe;
mod rtrace;
mod standin;
mod sys;
mod ust;
pub mod writer;

// Where the module's files look for them.
#[doc(hidden)]
pub use standin::{fmt, pin_init_scope, prelude, sync, uaccess};
