// SPDX-License-Identifier: GPL-2.0

//! The run of a recording: the command, and what begins and ends the recording.

pub mod condition;
pub mod kernel_log;
pub mod launch;
pub mod live;
pub mod map_limit;
pub mod slow;
pub mod watch;
pub mod workload;
