// SPDX-License-Identifier: GPL-2.0

//! The time of a recording: the command that is run, and what begins and ends it.

pub mod condition;
pub mod kernel_log;
pub mod launch;
pub mod live;
pub mod watch;
pub mod workload;
