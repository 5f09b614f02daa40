// SPDX-License-Identifier: GPL-2.0

//! The processor: what is written in its instructions, and what is built of them alone.
//!
//! Each processor has a folder with the same modules. Nothing here knows of tracing, nor of the
//! module's own wrappers in `sys`; of the kernel it names variables and types that the processor's
//! instructions refer to. [`platform`] gives the words to the ring and to the write side.
//!
//! Cargo compiles these files, too, but for what needs the kernel: the benchmark in user space
//! (tools/native) is made of the module's own instructions.

#![cfg_attr(not(MODULE), no_std, allow(stable_features), feature(asm_goto))]

#[cfg(not(MODULE))]
extern crate alloc;

pub mod chosen;
mod platform;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "x86_64")]
pub use x86::*;

// In the module these are rooms beside this one, for cargo they are crates.
#[cfg(MODULE)]
use crate::{record, ring};
#[cfg(not(MODULE))]
use {rtrace_record as record, rtrace_ring as ring};
