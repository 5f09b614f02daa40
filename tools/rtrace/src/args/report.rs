// SPDX-License-Identifier: GPL-2.0

//! `rtrace report`, as typed.

use super::{rows, PartArgs, SizeArgs};
use crate::complete;
use analysis::io::FileSort;
use analysis::Sort;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args};
use clap_complete::engine::ArgValueCompleter;
use std::path::PathBuf;

/// Summarise a trace: events by type and CPU, the busiest tasks, what was lost
///
/// For a trace that was recorded with --rotate, DIR is its directory, for all chunks in order, or one chunk.
///
/// With questions, answer these about the trace, several in one run. A question needs the events that it is about. If
/// the trace lacks them, the error says what to record. If events were lost, figures are lower bounds: nothing is timed
/// across a place where an event may be missing.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("sorted").args(["threads", "io"]).multiple(true)))]
pub struct ReportArgs {
    /// System calls: counts, failures, durations
    #[arg(long)]
    pub syscalls: bool,

    /// With --syscalls: also which process made them
    #[arg(hide_short_help = true)]
    #[arg(long, requires = "syscalls")]
    pub by_process: bool,

    /// With --syscalls: also the sums of all processes of a name
    #[arg(hide_short_help = true)]
    #[arg(long, requires = "syscalls", conflicts_with = "by_process")]
    pub by_name: bool,

    /// Wake-ups: how long threads waited for a CPU
    #[arg(long, conflicts_with = "events")]
    pub latency: bool,

    /// Threads: time running, runnable, waiting
    ///
    /// Also shows how each thread left its CPU.
    #[arg(long, conflicts_with = "events")]
    pub threads: bool,

    /// Order of --threads: longest running, runnable (waiting for a CPU) or blocked; of the files of --io: time,
    /// reads, writes, bytes
    ///
    /// Without it, --threads has the longest running thread first, and --io the file with the longest time.
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "COLUMN", requires = "sorted")]
    #[arg(value_parser = PossibleValuesParser::new([
        "running", "runnable", "blocked", "time", "reads", "writes", "bytes"
    ]).map(sort))]
    pub sort: Option<ReportSort>,

    /// CPUs: time busy, idle, in interrupts
    #[arg(long, conflicts_with_all = ["events", "pids", "comms"])]
    pub cpu: bool,

    /// Interrupts: counts and durations
    #[arg(long, conflicts_with_all = ["events", "pids", "comms"])]
    pub irq: bool,

    /// Block requests, io_uring, reads and writes
    #[arg(long, conflicts_with = "events")]
    pub io: bool,

    /// Kernel locks and futexes: waits for each
    #[arg(long, conflicts_with = "events")]
    pub locks: bool,

    /// Functions with most samples (`rtrace profile`)
    #[arg(long, conflicts_with = "events")]
    pub profile: bool,

    /// Maps: the tables that `rtrace record --map` counted
    #[arg(long, conflicts_with = "events")]
    pub maps: bool,

    /// AUX areas: chunks, and what found no room
    ///
    /// `rtrace export aux` writes their bytes.
    #[arg(hide_short_help = true)]
    #[arg(long, conflicts_with = "events")]
    pub aux: bool,

    /// Critical path of a thread: its work and waits
    ///
    /// The path is followed back through the threads that woke it. Of several threads that had this id, the last is
    /// taken. With --to: the path up to that time, and not to the thread's end.
    #[arg(long, value_name = "TID", value_parser = clap::value_parser!(i64).range(1..))]
    #[arg(conflicts_with_all = ["events", "from", "pids", "comms"])]
    pub critical_path: Option<i64>,

    #[command(flatten)]
    pub part: PartArgs,

    /// Calls of functions as a tree, with durations
    ///
    /// The form is that of ftrace's function_graph tracer. `rtrace record -G` records the calls.
    #[arg(long, conflicts_with_all = [
        "syscalls", "latency", "threads", "cpu", "irq", "io", "locks", "maps", "aux", "critical_path",
        "html", "json", "events", "budget"
    ])]
    pub graph: bool,

    /// For --graph: a row for each function, with percentiles
    #[arg(hide_short_help = true)]
    #[arg(long, requires = "graph")]
    pub summary: bool,

    /// Write a page: timeline, tables, flame graph
    ///
    /// The page needs only a browser. Without a question it answers all that the trace can answer. FILE is new
    /// unless --force; `-` is standard output.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "rows", "budget", "events", "from", "to", "pids", "comms"])]
    pub html: Option<PathBuf>,

    /// Serve the page to a browser on this machine
    ///
    /// The page of --html, with every event of a trace of any size. The command prints the address, which only this
    /// user knows. Ctrl-C ends it.
    #[arg(long, conflicts_with_all = ["graph", "html", "json", "rows", "budget", "events", "from", "to", "pids", "comms"])]
    pub serve: bool,

    /// Replace the FILE of --html if it exists
    #[arg(hide_short_help = true)]
    #[arg(long, requires = "html")]
    pub force: bool,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    /// Rows in each table; 0 for all
    #[arg(short = 'n', long, value_name = "ROWS", default_value = "15", value_parser = rows, conflicts_with = "budget")]
    pub rows: usize,

    #[command(flatten)]
    pub size: SizeArgs,

    /// Directory of the trace [default: the newest in the current directory]
    #[arg(value_name = "DIR")]
    #[arg(add = ArgValueCompleter::new(complete::traces))]
    pub dir: Option<PathBuf>,
}

/// The order of the rows of one question.
#[derive(Clone, Copy, Debug)]
pub enum ReportSort {
    /// Of --threads.
    Threads(Sort),
    /// Of the files of --io.
    Files(FileSort),
}

/// The order of a name that clap has checked.
fn sort(name: String) -> ReportSort {
    match name.as_str() {
        "runnable" => ReportSort::Threads(Sort::Runnable),
        "blocked" => ReportSort::Threads(Sort::Blocked),
        "time" => ReportSort::Files(FileSort::Time),
        "reads" => ReportSort::Files(FileSort::Reads),
        "writes" => ReportSort::Files(FileSort::Writes),
        "bytes" => ReportSort::Files(FileSort::Bytes),
        _ => ReportSort::Threads(Sort::Running),
    }
}
