// SPDX-License-Identifier: GPL-2.0

//! The session of a recording: its settings, from the command line or a file, and the restoration or removal
//! afterwards.

pub mod advice;
pub mod cgroup;
pub mod channels;
pub mod config;
pub mod earlier;
pub mod functions;
pub mod given;
pub mod leftovers;
pub mod maker;
pub mod maps;
pub mod on_drop;
pub mod patience;
pub mod setup;
pub mod tasks;
pub mod temporary;
pub mod values;
