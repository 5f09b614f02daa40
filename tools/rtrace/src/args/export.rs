// SPDX-License-Identifier: GPL-2.0

//! `rtrace export`, as typed.

use super::PartArgs;
use crate::complete;
use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;
use export::Counts;
use std::path::PathBuf;

/// Write a trace in the format of another tool
///
/// Each place where events were lost is marked in the output, except in folded, flamegraph and pprof, which
/// have no room for a mark. A message on standard error says how many events were lost.
///
/// The current thread is known from sched_switch, or from the context `tid`: record one of them.
///
/// DIR of a trace that was recorded with --rotate is the directory of its chunks, or one chunk.
#[derive(Debug, Args)]
#[command(subcommand_value_name = "FORMAT", subcommand_help_heading = "Formats")]
#[command(after_long_help = "\
Examples:
  rtrace export perfetto -o trace.perfetto DIR
  rtrace export text --from +1.5s --to +2s DIR | less
  rtrace export csv -e sched_switch DIR >switches.csv
  rtrace export folded DIR | inferno-flamegraph >graph.svg
  rtrace export flamegraph --off-cpu -o waits.svg DIR
  rtrace export flamegraph --off-wake -o wakers.svg DIR
  rtrace export parquet -o tables DIR1 DIR2 DIR3")]
pub struct ExportArgs {
    /// Format to write.
    #[command(subcommand)]
    pub format: ExportFormat,
}

/// The formats, each with its options.
#[derive(Debug, Subcommand)]
pub enum ExportFormat {
    /// For ui.perfetto.dev: Perfetto's protobuf
    ///
    /// It has scheduling, system calls and interrupts as Perfetto draws them, and other events as ftrace's.
    Perfetto(ExportFileArgs),
    /// For chrome://tracing and speedscope.app: Chrome's JSON
    ///
    /// It has the tasks and interrupts of each CPU, and the system calls of each thread.
    Chrome(ExportFileArgs),
    /// Comma-separated values: a row for each event
    ///
    /// The columns are time (seconds of the trace's clock), cpu, tid, comm and event. If -e picks one type of
    /// event, a column for each of its fields and for each context follows. Otherwise one column `fields`
    /// follows, with all of them as name=value.
    ///
    /// If a spreadsheet would execute a cell (=1+1), the first character of the cell becomes \xHH.
    Csv(ExportFileArgs),
    /// The text of ftrace, as tracefs' `trace` has it
    Text(ExportFileArgs),
    /// Call stacks with counts, for flamegraph.pl
    ///
    /// inferno-flamegraph and speedscope.app read them as well.
    /// The stacks are those of the contexts callstack-kernel and callstack-user. Functions have names if `rtrace
    /// record --symbols` or `rtrace profile` saved them. Names of kernel functions are also known if the trace is
    /// of this boot of this machine and /proc/kallsyms shows addresses. Other functions stay addresses.
    Folded(ExportStacksArgs),
    /// A flame graph of call stacks, for a browser
    ///
    /// If the trace has samples (`rtrace profile`), the graph shows only those, without those of idle CPUs.
    /// -e chooses other events.
    Flamegraph(ExportStacksArgs),
    /// A profile for go tool pprof and pyroscope
    ///
    /// If the trace has samples (`rtrace profile`), the profile has only those, without those of idle CPUs.
    /// -e chooses other events.
    Pprof(ExportFileArgs),
    /// The text of `perf script`, with call stacks
    PerfScript(ExportFileArgs),
    /// A directory for lttng-analyses
    ///
    /// Its kernel/ has hard links to the trace's files, or copies.
    Lttng(ExportFolderArgs),
    /// The raw bytes of AUX areas, with an index
    ///
    /// The directory has a file CHANNEL_cpuN for each AUX area with its chunks in order, and index.csv with a row
    /// for each chunk: time (as in csv), event, cpu, file, at (offset of the chunk in the file), size, lost (bytes
    /// that found no room before it), flags, and position (in the CPU's stream). An incomplete chunk has no bytes
    /// in the file, and an empty `at`.
    Aux(ExportFolderArgs),
    /// Tables for DuckDB, Spark, pandas, of several traces
    ///
    /// The files are DIR/TABLE/host=NAME/date=YYYY-MM-DD/part-*.parquet. There is a table for each type of event:
    /// time (UTC), ns (nanoseconds since the epoch), cpu, task_tid, task_pid and task_comm (the current task), the
    /// event's fields and the contexts. These tables are made from several events:
    ///
    ///   slices      run times: cpu, tid, pid, comm, duration_ns, is_complete
    ///   wakeups     from a wake-up until the thread runs: cpu, tid, pid, comm, duration_ns
    ///   offcpu      waits: the same, and state: interruptible, preempted, ...
    ///   syscalls    calls: cpu, tid, pid, comm, name, duration_ns, ret, error
    ///   interrupts  cpu, kind (hard, soft), number, name, duration_ns, own_ns (without nested ones)
    ///   samples     of a profile: cpu, tid, pid, comm, function, object, stack
    ///   losses      where events are missing: cpu, duration_ns, events, packets
    ///
    /// A trace's files get their names when the whole trace was read. A trace that was exported before is refused
    /// without --force.
    #[command(verbatim_doc_comment)]
    Parquet(ExportTablesArgs),
}

/// Options of a format that is one file.
#[derive(Debug, Args)]
pub struct ExportFileArgs {
    /// Write to FILE, which must not exist, or to standard output if FILE is `-` [default: -]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long, requires = "output")]
    pub force: bool,

    #[command(flatten)]
    pub part: PartArgs,

    /// Directory of the trace [default: the newest in the current directory]
    #[arg(value_name = "DIR")]
    #[arg(add = ArgValueCompleter::new(complete::traces))]
    pub dir: Option<PathBuf>,
}

/// Options of a format of call stacks.
#[derive(Debug, Args)]
pub struct ExportStacksArgs {
    /// Count microseconds that threads were blocked with each stack, not events
    ///
    /// A thread is blocked from the sched_switch that has its stack to the one with which it runs again.
    #[arg(long)]
    pub off_cpu: bool,

    /// The same, with the stacks of the threads or interrupts that woke them
    ///
    /// After the sleeper's functions and `--`, a line has the functions of the waker, the innermost first. If the waker
    /// itself slept meanwhile, its own waker follows, and so on. The stack of sched_waking is that of the waker.
    #[arg(long, conflicts_with = "off_cpu")]
    pub off_wake: bool,

    #[command(flatten)]
    pub file: ExportFileArgs,
}

impl ExportStacksArgs {
    /// The quantity that stacks count.
    pub fn counts(&self) -> Counts {
        match (self.off_cpu, self.off_wake) {
            (true, _) => Counts::OffCpu,
            (_, true) => Counts::OffWake,
            _ => Counts::Events,
        }
    }
}

/// Options of a format that is a directory.
#[derive(Debug, Args)]
pub struct ExportFolderArgs {
    /// Directory to make
    #[arg(short, long, value_name = "NEW", value_parser = PathBufValueParser::new().try_map(folder))]
    pub output: PathBuf,

    /// Directory of the trace [default: the newest in the current directory]
    #[arg(value_name = "DIR")]
    #[arg(add = ArgValueCompleter::new(complete::traces))]
    pub dir: Option<PathBuf>,
}

/// Options of tables.
#[derive(Debug, Args)]
pub struct ExportTablesArgs {
    /// Directory of the tables, new or with tables of other traces
    #[arg(short, long, value_name = "TABLES", value_parser = PathBufValueParser::new().try_map(folder))]
    pub output: PathBuf,

    /// Replace what TABLES has of the same traces
    #[arg(long)]
    pub force: bool,

    #[command(flatten)]
    pub part: PartArgs,

    /// Directories of the traces [default: the newest in the current directory]
    #[arg(value_name = "DIR")]
    #[arg(add = ArgValueCompleter::new(complete::traces))]
    pub dirs: Vec<PathBuf>,
}

/// Parses the name of a directory to write.
fn folder(path: PathBuf) -> Result<PathBuf, &'static str> {
    match path.as_os_str() == "-" {
        true => Err("standard output cannot hold a directory: name a directory with -o"),
        false => Ok(path),
    }
}
