// SPDX-License-Identifier: GPL-2.0

//! The processor: what is written in its instructions.
//!
//! Each processor has a folder with the same modules. Nothing here knows of tracing, nor of the
//! module's own wrappers in `sys`; of the kernel it names variables and types that the processor's
//! instructions refer to.

#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::*;
