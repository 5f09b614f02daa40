// SPDX-License-Identifier: GPL-2.0

//! Part of a recorded trace.

use super::comm;
use analysis::choice::Choice;
use clap::Args;
use terminal::date::PointInTime;

/// A range of time, and tasks.
#[derive(Clone, Debug, Args)]
pub struct PartArgs {
    /// Only what happened from TIME on: 23:00:01, or +5s after the trace's begin
    ///
    /// A time of the day is the first one in the trace, as the reports show it; 2026-11-27T23:00:01 names the day.
    /// A number is a time of the trace's clock in seconds. An operation that began before TIME is not timed.
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "TIME")]
    pub from: Option<PointInTime>,

    /// Only what happened up to TIME
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "TIME")]
    pub to: Option<PointInTime>,

    /// Only what these processes did
    #[arg(hide_short_help = true)]
    #[arg(short, long = "pid", value_name = "PID", value_delimiter = ',')]
    pub pids: Vec<u32>,

    /// Only what threads of this name did: a name, or a pattern with *, ? and [...]
    #[arg(hide_short_help = true)]
    #[arg(long = "comm", value_name = "NAME", value_delimiter = ',', value_parser = comm)]
    pub comms: Vec<String>,
}

impl PartArgs {
    /// The part.
    pub fn choice(self) -> Choice {
        Choice {
            from: self.from,
            to: self.to,
            pids: self.pids,
            comms: self.comms,
        }
    }
}
