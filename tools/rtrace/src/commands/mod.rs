// SPDX-License-Identifier: GPL-2.0

//! The commands, one file or folder each. A command uses no other command.

pub mod control;
pub mod count;
pub mod diff;
pub mod doctor;
pub mod export;
pub mod latency;
pub mod list;
pub mod mark;
pub mod mcp;
pub mod probe;
pub mod profile;
pub mod query;
pub mod record;
pub mod recover;
pub mod report;
pub mod sessions;
pub mod show;
pub mod snapshot;
pub mod status;
#[cfg(test)]
mod tests;
pub mod top;
pub mod why;
