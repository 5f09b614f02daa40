// SPDX-License-Identifier: GPL-2.0

//! Records that programs write: bytes that the module must not trust.
//!
//! A program may write any bytes. Only bytes that have the [`shape`] of an event become a record, so no program can make
//! a trace that a reader cannot parse.
//!
//! The code has no pointer, no kernel call and no allocation, and cannot panic. kbuild compiles these files into the
//! module; cargo compiles the same files for the tests.

#![cfg_attr(not(MODULE), no_std)]
#![forbid(unsafe_code)]

pub mod shape;
