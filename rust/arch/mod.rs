// SPDX-License-Identifier: GPL-2.0

//! The processor: code that is written in its instructions, and types built only on that code.
//!
//! Each processor has a folder with the same modules. The files beside these folders have the code that processors
//! share. No code here knows of tracing or of the module's own wrappers in `sys`. Of the kernel it names only
//! variables and types that the processor's instructions use. [`platform`] gives the words to ring, maps and write side.
//!
//! Cargo compiles these files, too, except the parts that need the kernel. So the benchmark in user
//! space (tools/native) uses the module's own instructions.

#![cfg_attr(not(MODULE), no_std, allow(stable_features), feature(asm_goto))]

#[cfg(not(MODULE))]
extern crate alloc;

#[cfg(target_arch = "aarch64")]
#[path = "arm64/mod.rs"]
mod processor;
#[cfg(target_arch = "x86_64")]
#[path = "x86/mod.rs"]
mod processor;

pub mod chosen;
mod platform;
#[cfg(MODULE)]
pub mod preempt;
pub mod word;

pub use processor::*;

// In the module these are rooms next to this one; for cargo they are crates.
#[cfg(MODULE)]
use crate::{map, record, ring};
#[cfg(not(MODULE))]
use {rtrace_map as map, rtrace_record as record, rtrace_ring as ring};
