// SPDX-License-Identifier: GPL-2.0

//! What the numbers in system calls are called: flags, constants, errors; and the order of arguments.
//!
//! The names and their values are those of the kernel's uapi headers, by way of the crates `libc` and
//! `nix`. What is not in a table stays a number, and bits without a name stay in hexadecimal.

mod error;
mod meaning;
mod order;
mod tables;

pub use error::write_error;
pub use meaning::Meaning;
pub use order::{is_call, position};
pub use tables::{argument, is_given, result};
