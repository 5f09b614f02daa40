// SPDX-License-Identifier: GPL-2.0

//! Records that programs write: bytes that the module must not trust.
//!
//! A program may write any bytes. Only bytes that have the [`shape`] of an event become a record, so no program can make
//! a trace that a reader cannot parse.
//!
//! Records reach the module by write(2), or through rings in memory that the program and the module share:
//! - [`position`]: which bytes of a ring are written, and how far the program may write;
//! - [`record`]: the form of a record in a ring;
//! - [`reader`]: copies bytes, and finds the valid records of the copy;
//! - [`merge`]: the order of the records of several rings.
//!
//! The code has no pointer, no kernel call and no allocation, and cannot panic. kbuild compiles these files into the
//! module; cargo compiles the same files for the tests.

#![cfg_attr(not(MODULE), no_std)]
#![forbid(unsafe_code)]

pub mod merge;
pub mod position;
pub mod reader;
pub mod record;
pub mod shape;
