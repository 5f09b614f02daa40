// SPDX-License-Identifier: GPL-2.0

//! The write side: what runs when an event is recorded.
//!
//! A probe enters its CPU's [`gate`], which leads to that CPU's [`buffer`]. The buffer reads the
//! [`clock`], reserves in the [`ring`] and lays the record down in its [`memory`]: an event
//! [`header`], then the fields. Where a record begins or ends a packet, [`packet`] writes the
//! packet's header.
//!
//! Nothing here names a facility of the kernel: what the write side runs on is a [`platform`]. So
//! kbuild compiles these files into the module, and cargo compiles them into a crate, which
//! benchmarks and tests use as it is.
//!
//! Everything that runs per event may run in any context, NMI included, and is inlined into the
//! probe; see "Rules of the hot path" in Documentation/architecture.md.

#![cfg_attr(not(MODULE), no_std)]

pub mod buffer;
pub mod clock;
pub mod format;
pub mod gate;
pub mod header;
pub mod memory;
pub mod packet;
pub mod platform;

// In the module these are rooms beside this one, for cargo they are crates.
#[cfg(MODULE)]
use crate::{abi, ring};
#[cfg(not(MODULE))]
use {rtrace_abi as abi, rtrace_ring as ring};
