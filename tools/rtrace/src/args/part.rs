// SPDX-License-Identifier: GPL-2.0

//! Part of a recorded trace.

use super::comm;
use crate::complete;
use analysis::choice::Part;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use export::Choice;
use record::session::values::pattern;
use terminal::date::PointInTime;

/// Events, a range of time, and tasks.
#[derive(Clone, Debug, Args)]
pub struct PartArgs {
    /// Only these events: EVENT, SYSTEM:EVENT or SYSTEM, with *, ? and [...]; !PATTERN excludes
    ///
    /// Names are rtrace's or ftrace's. SYSTEM is the part of an event's name before the first _; that of system
    /// calls is `syscalls`. Several patterns are separated by commas, or given with -e each.
    #[arg(hide_short_help = true)]
    #[arg(short, long = "event", value_name = "PATTERN", value_delimiter = ',')]
    #[arg(value_parser = pattern)]
    #[arg(add = ArgValueCompleter::new(complete::events))]
    pub events: Vec<String>,

    #[command(flatten)]
    pub range: RangeArgs,

    /// Only what these processes did
    #[arg(hide_short_help = true)]
    #[arg(short, long = "pid", value_name = "PID", value_delimiter = ',')]
    pub pids: Vec<u32>,

    /// Only what threads of this name did: a name, or a pattern with *, ? and [...]
    #[arg(hide_short_help = true)]
    #[arg(long = "comm", value_name = "NAME", value_delimiter = ',', value_parser = comm)]
    pub comms: Vec<String>,
}

/// A range of time.
#[derive(Clone, Copy, Debug, Args)]
pub struct RangeArgs {
    /// Only what happened from TIME on: 23:00:01, or +5s after the trace's begin
    ///
    /// A time of the day is the first one in the trace, as the reports show it; 2026-11-27T23:00:01 names the day.
    /// A number is a time of the trace's clock in seconds. An operation that began before TIME is not timed. Of a wait,
    /// the part in the range counts.
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "TIME")]
    pub from: Option<PointInTime>,

    /// Only what happened up to TIME
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "TIME")]
    pub to: Option<PointInTime>,
}

impl PartArgs {
    /// The part.
    pub fn choice(self) -> Choice {
        Choice {
            patterns: self.events,
            part: Part {
                from: self.range.from,
                to: self.range.to,
                pids: self.pids,
                comms: self.comms,
                events: None,
            },
        }
    }
}
