// SPDX-License-Identifier: GPL-2.0

//! The write side: the code that runs when an event is recorded.
//!
//! A probe enters its CPU's [`gate`] to reach that CPU's [`buffer`]. The buffer reads the
//! [`clock`], reserves in the [`ring`] and writes the record to its [`memory`]: an event
//! [`header`], then the fields. At the first or last record of a packet, [`packet`] writes the
//! packet's header.
//!
//! No code here calls the kernel. The trait [`platform`] provides what the write side needs. So
//! kbuild compiles these files into the module, and cargo compiles the same files into a crate for
//! benchmarks and tests.
//!
//! All code that runs per event may run in any context, NMI included, and is inlined into the
//! probe; see "Rules of the hot path" in Documentation/internals/architecture.md.

#![cfg_attr(not(MODULE), no_std)]

pub mod buffer;
pub mod clock;
pub mod format;
pub mod gate;
pub mod header;
pub mod memory;
pub mod packet;
pub mod platform;

// In the module these are rooms next to this one; for cargo they are crates.
#[cfg(MODULE)]
use crate::{abi, ring};
#[cfg(not(MODULE))]
use {rtrace_abi as abi, rtrace_ring as ring};
