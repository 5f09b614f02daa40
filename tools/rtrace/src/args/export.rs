// SPDX-License-Identifier: GPL-2.0

//! `rtrace export`, as typed.

use super::setup::pattern;
use clap::Args;
use export::Time;
use std::path::PathBuf;

/// Write a trace in the format of another tool
///
/// Of a trace that was recorded with --rotate, DIR is its directory, for all chunks in their order, or
/// one of them. Who runs is known from sched_switch, or from the context `tid`: record one of
/// them.
///
/// Each place where events were lost is marked in the output, but in --folded, --flamegraph and --pprof,
/// which have no room for it;
/// how many were lost is said on standard error.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Formats:
  --perfetto     ui.perfetto.dev: Open trace file
  --chrome       speedscope.app, ui.perfetto.dev, chrome://tracing
  --csv          spreadsheets, awk, pandas
  --text         grep, and everything that reads ftrace's `trace`
  --folded       flame graphs: inferno-flamegraph, flamegraph.pl, speedscope.app
  --flamegraph   a browser: a picture in which a click enlarges
  --pprof        go tool pprof, speedscope.app, pyroscope
  --perf-script  stackcollapse-perf.pl, inferno-collapse-perf, speedscope.app
  --lttng        lttng-analyses: a folder with the trace's files in kernel/
  --aux          decoders: the chunks of raw bytes that other modules wrote beside the events
  --parquet      DuckDB, Spark, Trino, ClickHouse, pandas: tables of many traces and machines

--parquet writes FILE/TABLE/host=NAME/date=YYYY-MM-DD/part-*.parquet. A table is called as its event and has
the columns time (UTC), ns (nanoseconds since the epoch), cpu, task_tid, task_pid and task_comm (which task it
happened to), the event's fields and the contexts. Made from several events are
slices      what ran: cpu, tid, pid, comm, duration_ns, is_complete
wakeups     from a wake-up until the thread runs: cpu, tid, pid, comm, duration_ns
offcpu      what threads waited for: the same, and state: interruptible, preempted, ...
syscalls    calls: cpu, tid, pid, comm, name, duration_ns, ret, error
interrupts  cpu, kind (hard, soft), number, name, duration_ns, own_ns (without others meanwhile)
samples     of a profile: cpu, tid, pid, comm, function, object, stack
losses      where events are missing: cpu, duration_ns, events, packets
A trace's files get their names when all of it was read; one that was exported before is refused.

--aux makes a directory with a file CHANNEL_cpuN for each AUX area, the chunks one behind the other, and
index.csv: a row for each chunk, with time (as in --csv), event, cpu, file, at (where in the file it begins),
size, lost (bytes that found no room before it), flags, and position (where it was in the CPU's stream).
A chunk that is not there as a whole has no bytes in the file, and an empty `at`.

The columns of --csv are time (in seconds of the trace's clock), cpu, tid, comm and event. Behind
them, if -e picks one type of event, is a column for each of its fields and for each context, else
one column `fields`, with all of them as name=value.

Functions have names in call stacks if `rtrace record --symbols` or `rtrace profile` has saved them; the
kernel's also if the trace is of this boot of this machine, and /proc/kallsyms shows addresses.
Others stay addresses. Where samples were recorded (`rtrace profile`), --flamegraph and --pprof are of
these alone, but for those of idle CPUs; -e chooses others.

Examples:
  rtrace export --perfetto -o trace.perfetto DIR
  rtrace export --text --from +1.5 --to +2 DIR | less
  rtrace export --csv -e sched_switch DIR >switches.csv
  rtrace record --context comm,callstack-kernel -e sched_switch -o DIR -- make
  rtrace export --folded DIR | inferno-flamegraph >graph.svg
  rtrace export --flamegraph --off-cpu -o waits.svg DIR
  rtrace export --parquet -o tables DIR1 DIR2 DIR3")]
pub struct ExportArgs {
    #[command(flatten)]
    pub format: FormatArgs,

    /// File for it, new unless --force; with --lttng and --aux a new directory, with --parquet one to which files
    /// are added. `-` is standard output [default: -]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Replace FILE if it is there; with --parquet what is there of the same traces
    #[arg(long, requires = "output", conflicts_with_all = ["lttng", "aux"])]
    pub force: bool,

    /// Only these events: EVENT, SYSTEM:EVENT or SYSTEM, by rtrace's names or ftrace's, with *, ? and
    /// [...], and !PATTERN for but these. SYSTEM is what an event's name begins with, up to the first _;
    /// of system calls `syscalls`. Several are separated by commas, or given with -e each
    #[arg(short, long = "event", value_name = "PATTERN", value_delimiter = ',')]
    #[arg(value_parser = pattern, conflicts_with_all = ["lttng", "aux"])]
    pub events: Vec<String>,

    /// For --folded and --flamegraph: how many microseconds threads were blocked with each stack, from the
    /// sched_switch that has it to the one with which the thread runs again
    #[arg(long)]
    pub off_cpu: bool,

    /// Nothing before TIME: seconds of the trace's clock, as --text and --csv show them, or +SECONDS
    /// since the trace's begin
    #[arg(long, value_name = "TIME", conflicts_with_all = ["lttng", "aux"])]
    pub from: Option<Time>,

    /// Nothing after TIME
    #[arg(long, value_name = "TIME", conflicts_with_all = ["lttng", "aux"])]
    pub to: Option<Time>,

    /// Directory of the trace; with --parquet of several
    #[arg(value_name = "DIR", required = true)]
    pub dirs: Vec<PathBuf>,
}

/// Which format: one of them.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct FormatArgs {
    /// Perfetto's trace: scheduling, system calls and interrupts as it draws them, and all else as
    /// events of ftrace
    #[arg(long)]
    pub perfetto: bool,

    /// Chrome's JSON: the tasks and interrupts of each CPU, the system calls of each thread
    #[arg(long)]
    pub chrome: bool,

    /// Comma-separated values: a row for each event
    #[arg(long)]
    pub csv: bool,

    /// The text of ftrace, as tracefs' `trace` has it
    #[arg(long)]
    pub text: bool,

    /// Call stacks, each with its count, from the contexts callstack-kernel and callstack-user
    #[arg(long)]
    pub folded: bool,

    /// A flame graph: how often each call stack was there, as SVG
    #[arg(long)]
    pub flamegraph: bool,

    /// A profile in Google's format
    #[arg(long)]
    pub pprof: bool,

    /// The text of `perf script`, with call stacks
    #[arg(long)]
    pub perf_script: bool,

    /// A folder as LTTng has it: hard links to the trace's files, or copies
    #[arg(long, requires = "output")]
    pub lttng: bool,

    /// The chunks of AUX areas, and an index of them
    #[arg(long, requires = "output")]
    pub aux: bool,

    /// Tables with typed columns: one for each type of event, and those of the questions of `rtrace report`
    #[arg(long, requires = "output")]
    pub parquet: bool,
}
