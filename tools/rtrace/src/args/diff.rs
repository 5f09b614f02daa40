// SPDX-License-Identifier: GPL-2.0

//! `rtrace diff`, as typed.

use super::{rows, SizeArgs};
use clap::Args;
use std::path::PathBuf;

/// Compare two traces: what changed, and what of it exceeds the traces' own variation
///
/// Per system call, thread name, interrupt and softirq: how often per second, time per second, median and 99th
/// percentile. The same per function of -G, and per probe with a result (-k 'f -> ret'). Per function of a profile:
/// samples per second. The figures are those of `rtrace report`.
///
/// Each trace is cut into windows of equal length, a twentieth of the shorter trace. A change is marked if the
/// windows' values of one trace tend to be larger than those of the other trace: the rank-sum test of Mann and
/// Whitney. Windows in which events are missing are left out. The chance of a wrong mark is 1% for the comparison as a
/// whole, if the windows are independent. Windows of one run often are not: a load that lasts for several windows
/// changes all of them, so there are more wrong marks. A mark says that the two traces differ, not why: two runs of the
/// same program can differ too. So record several runs of each, and trust the changes that all pairs show.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  rtrace diff before after
  rtrace diff -n 0 before after | grep '[*]$'
  rtrace diff --json before after
  rtrace diff --html changes.html before after")]
pub struct DiffArgs {
    /// Print one JSON object, with all names
    #[arg(long, conflicts_with = "rows")]
    pub json: bool,

    /// Write a page with all names; `-` is standard output
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "rows", "budget"])]
    pub html: Option<PathBuf>,

    /// Replace the FILE of --html if it exists
    #[arg(hide_short_help = true)]
    #[arg(long, requires = "html")]
    pub force: bool,

    /// Names in each table; 0 for all
    #[arg(short = 'n', long, value_name = "ROWS", default_value = "15", value_parser = rows, conflicts_with = "budget")]
    pub rows: usize,

    #[command(flatten)]
    pub size: SizeArgs,

    /// Directory of the first trace
    #[arg(value_name = "A")]
    pub a: PathBuf,

    /// Directory of the second trace
    #[arg(value_name = "B")]
    pub b: PathBuf,
}
