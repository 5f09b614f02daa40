// SPDX-License-Identifier: GPL-2.0

//! Traces of a crashed kernel.
//!
//! [`region`] finds the buffers in the kernel's memory, [`dump`] in a dump of it, [`remains`] finds the packets in a
//! buffer, and [`recovered`] makes a trace of them.

#![forbid(unsafe_code)]

pub mod dump;
pub mod recovered;
pub mod region;
mod remains;
