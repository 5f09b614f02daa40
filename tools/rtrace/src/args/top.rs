// SPDX-License-Identifier: GPL-2.0

//! `rtrace top`, as typed.

use super::rows;
use crate::complete;
use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use std::path::PathBuf;
use std::time::Duration;
use system::quantity;

/// Show the threads that use the CPUs, their waits and calls
///
/// Each table is of the last second. CPU% is the share of one CPU. Wake-ups are those after which the thread ran;
/// `worst` is the longest of their waits for a CPU. The call is the one that the thread made most often.
///
/// Keys: q ends; p or the space bar stops the table and continues it; c, s, u, w, y, e, t sort by CPU, switches,
/// wake-ups, wait, system calls, errors, thread id.
///
/// If standard output is no terminal, tables are printed one after the other, as with --batch.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  rtrace top                                        until q
  rtrace top --once --sort wait                     one table: who waited longest
  rtrace top --count 60 --json >minute              an object for each second of a minute
  rtrace top -i rtrace-20261120-230000              a trace that was recorded, second by second")]
pub struct TopArgs {
    /// Time from table to table
    #[arg(short = 'd', long, value_name = "DURATION", default_value = "1s", value_parser = interval)]
    pub interval: Duration,

    /// End after N tables
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Print tables one after the other
    #[arg(long)]
    pub batch: bool,

    /// Print one table: the same as --batch --count 1
    #[arg(long, conflicts_with = "count")]
    pub once: bool,

    /// Sort by this column, the largest first
    #[arg(long, value_name = "COLUMN", value_enum, default_value_t = Column::Cpu)]
    pub sort: Column,

    /// Rows in a table that is printed; 0 for all
    #[arg(short = 'n', long, value_name = "ROWS", default_value = "20", value_parser = rows)]
    pub rows: usize,

    /// Print a JSON object for each table, a line each, with all rows
    #[arg(long)]
    pub json: bool,

    /// Take the trace in DIR, or the newest in the current directory; it needs sched_switch
    #[arg(short, long, value_name = "DIR", num_args = 0..=1)]
    #[arg(add = ArgValueCompleter::new(complete::traces))]
    pub input: Option<Option<PathBuf>>,
}

/// Columns by which a table can be sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Column {
    /// Time on a CPU.
    Cpu,
    /// How often the thread got a CPU.
    Switches,
    /// How often it was woken.
    Wakeups,
    /// The longest wait for a CPU after a wake-up.
    Wait,
    /// System calls.
    Calls,
    /// System calls that failed.
    Errors,
    /// Thread id, the smallest first.
    Tid,
}

/// Parses the time from table to table.
fn interval(text: &str) -> Result<Duration, String> {
    let interval = quantity::duration(text)?;
    match interval >= Duration::from_millis(100) && interval.as_secs() <= 86_400 {
        true => Ok(interval),
        false => Err("expected a duration from 100ms to 1d".to_owned()),
    }
}
