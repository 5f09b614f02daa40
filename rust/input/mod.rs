// SPDX-License-Identifier: GPL-2.0

//! What user space writes to the control files, taken apart.
//!
//! kbuild compiles this folder into the module; cargo compiles the same files for the
//! tools, which take the same words, and for the fuzzer. Nothing here depends on the kernel
//! or on `std`, and nothing allocates.

#![cfg_attr(not(MODULE), no_std)]
#![forbid(unsafe_code)]

pub mod caret;
pub mod cpulist;
pub mod dynamic;
pub mod filter;
pub mod function;
pub mod glob;
pub mod marker;
pub mod name;
pub mod number;
pub mod pattern;
pub mod rest;
pub mod state;
pub mod trigger;
