// SPDX-License-Identifier: GPL-2.0

//! `rtrace report`, as typed.

use clap::Args;
use std::path::PathBuf;
use terminal::date::PointInTime;

/// Summarise a trace: events by type and CPU, the busiest tasks, what was lost
///
/// Of a trace that was recorded with --rotate, DIR is its directory, for all chunks in their order, or
/// one of them.
///
/// Or answer questions about it, several in one run. A question needs the events that it is about;
/// where the trace lacks them, the error says what to record. Where events were lost, figures are
/// lower bounds: nothing is timed across a place where an event may be missing.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// System calls: how often, how many failed, how long they took
    #[arg(long)]
    pub syscalls: bool,

    /// Also which process made them
    #[arg(long, requires = "syscalls")]
    pub by_process: bool,

    /// Wake-ups: how long threads waited until they ran, with the longest waits
    #[arg(long)]
    pub latency: bool,

    /// Threads: how long each ran, could have run, and waited, and how it left its CPU
    #[arg(long)]
    pub threads: bool,

    /// CPUs: how long each was busy, idle, and in interrupts
    #[arg(long)]
    pub cpu: bool,

    /// Interrupts, hard and soft: how often each was handled, and how long that took
    #[arg(long)]
    pub irq: bool,

    /// Input and output: requests to block devices, with the longest; what processes read and wrote
    #[arg(long)]
    pub io: bool,

    /// Locks of the kernel, and futexes: how long threads waited for each, and who the longest
    #[arg(long)]
    pub locks: bool,

    /// Functions: in which the CPUs' time went by, by samples of what ran (`rtrace profile`)
    #[arg(long)]
    pub profile: bool,

    /// AUX areas: chunks of raw bytes that other modules wrote beside the events, and what found no room
    /// (`rtrace export aux` has the bytes)
    #[arg(long)]
    pub aux: bool,

    /// The critical path of a thread: what it did and waited for, followed back through those that
    /// woke it; of several threads that had this id, the last
    #[arg(long, value_name = "TID", value_parser = clap::value_parser!(i64).range(1..))]
    pub critical_path: Option<i64>,

    /// The critical path up to TIME, not to the thread's end: 23:00:01, or +5s after the trace's begin
    ///
    /// A time of the day is the first one in the trace, as the reports show it; 2026-11-27T23:00:01 names the day.
    /// A number is a time of the trace's clock in seconds.
    #[arg(long, value_name = "TIME", requires = "critical_path")]
    pub to: Option<PointInTime>,

    /// Print the calls of functions as a tree, each with how long it took (see `rtrace record -G`),
    /// in the form of ftrace's function_graph tracer
    #[arg(long, conflicts_with_all = [
        "syscalls", "latency", "threads", "cpu", "irq", "io", "locks", "aux", "critical_path", "html",
        "json", "rows"
    ])]
    pub graph: bool,

    /// Write one HTML page, which needs nothing but a browser: timeline, tables, flame graph. Without a
    /// question it answers all that the trace can answer. FILE is new unless --force; `-` is standard output
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "rows"])]
    pub html: Option<PathBuf>,

    /// Replace the FILE of --html if it is there
    #[arg(long, requires = "html")]
    pub force: bool,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    /// Rows in each table; 0 for all
    #[arg(short = 'n', long, value_name = "ROWS", default_value_t = 15)]
    pub rows: usize,

    /// Directory of the trace
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}
