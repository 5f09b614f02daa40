// SPDX-License-Identifier: GPL-2.0

//! The system, as all other crates use it: files, permissions, limits, priority, signals, CPUs, peers, containers and times. Also
//! the [`Error`] of all crates.

#![forbid(unsafe_code)]

pub mod access;
pub mod code;
pub mod container;
pub mod cpus;
mod error;
pub mod files;
pub mod new_file;
pub mod peer;
pub mod printing;
pub mod priority;
pub mod quantity;
pub mod regular_file;
pub mod session;
pub mod signals;
pub mod time;

pub use error::{Error, Result};
