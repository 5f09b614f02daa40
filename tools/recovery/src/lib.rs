// SPDX-License-Identifier: GPL-2.0

//! Traces of a kernel that went down.
//!
//! [`region`] finds the buffers in its memory, [`dump`] in a dump of it, [`remains`] the packets in a buffer;
//! [`recovered`] makes a trace of them.

#![forbid(unsafe_code)]

pub mod dump;
pub mod recovered;
pub mod region;
mod remains;
