// SPDX-License-Identifier: GPL-2.0

//! Parsers of the control files' input.
//!
//! kbuild compiles this folder into the module. cargo compiles the same files for the tools, which
//! accept the same words, and for the fuzzer. No code here depends on the kernel or on `std`, or
//! allocates memory.

#![cfg_attr(not(MODULE), no_std)]
#![forbid(unsafe_code)]

pub mod caret;
pub mod cpulist;
pub mod dynamic;
pub mod filter;
pub mod function;
pub mod glob;
pub mod hist;
pub mod map;
pub mod marker;
pub mod name;
pub mod number;
pub mod pattern;
pub mod program;
pub mod rest;
pub mod state;
pub mod trigger;
