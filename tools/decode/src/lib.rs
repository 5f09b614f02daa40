// SPDX-License-Identifier: GPL-2.0

//! What the numbers in system calls are called: flags, constants, errors; and the calls themselves.
//!
//! The names and their values are those of the kernel's uapi headers, by way of the crates `libc` and
//! `nix`. What is not in a table stays a number, and bits without a name stay in hexadecimal.

#![forbid(unsafe_code)]

mod calls;
mod error;
mod meaning;
mod tables;

pub use calls::{arguments, calls, is_call, is_descriptor, number, position};
pub use error::{error_name, write_error};
pub use meaning::Meaning;
pub use tables::{argument, is_given, result, EPOLL_EVENTS, POLL_EVENTS};
