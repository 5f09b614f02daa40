// SPDX-License-Identifier: GPL-2.0

//! Recordings: the set-up of a session, the command that runs meanwhile, and the trace on disk.

#![forbid(unsafe_code)]

pub mod compat;
pub mod exit;
pub mod place;
pub mod probe;
pub mod recipes;
pub mod recording;
pub mod run;
pub mod session;
pub mod state;
