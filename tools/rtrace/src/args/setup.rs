// SPDX-License-Identifier: GPL-2.0

//! Settings of a recording, as typed: the options that `rtrace record`, `rtrace start` and `rtrace trace` share.

use super::places::Places;
use crate::complete;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use control::BufferSize;
use record::session::channels::ChannelArg;
use record::session::values::{aux_size, filter, frequency, function, pattern};
use std::path::PathBuf;

/// Choice of events, of tasks, and of the size of the buffers.
#[derive(Debug, Args)]
pub struct ChoiceArgs {
    /// Record these events: names or patterns
    ///
    /// SYSTEM:EVENT, EVENT or SYSTEM, by the names of rtrace, ftrace or perf, with *, ? and [...]; !PATTERN
    /// excludes. The name of a system call means its begin and its end. A pattern without a colon also picks system
    /// calls (open*). %file, %desc, %process, %net, %signal, %ipc, %memory, %creds and %clock are sets of them, as
    /// in strace. Several patterns are separated by commas, or given with -e each. If a pattern names the system, it
    /// also picks events that rtrace records through perf. The word sched includes task_rename: the names of threads.
    #[arg(short, long = "event", value_name = "PATTERN", value_delimiter = ',')]
    #[arg(value_parser = pattern)]
    #[arg(add = ArgValueCompleter::new(complete::events))]
    pub events: Vec<String>,

    /// Exclude these events
    ///
    /// Like -e '!PATTERN'. Without -e: all events except these.
    #[arg(hide_short_help = true)]
    #[arg(
        short = 'x',
        long = "exclude",
        value_name = "PATTERN",
        value_delimiter = ','
    )]
    #[arg(value_parser = pattern)]
    #[arg(add = ArgValueCompleter::new(complete::events))]
    pub exclude: Vec<String>,

    /// Buffer of each CPU, as 1Mx4
    ///
    /// N sub-buffers of SIZE bytes (with K, M, G), both powers of two.
    #[arg(short, long, value_name = "SIZExN")]
    pub buffer: Option<BufferSize>,

    #[arg(skip)]
    pub places: Places,

    /// Record the -e before it only if EXPR is true
    ///
    /// After a -k or -u, the filter applies to its event. The language is ftrace's: 'prev_prio < 0 && next_comm ~
    /// "kworker*"'. Names are those of the event's fields, and of contexts. See rtrace-filter(7).
    #[arg(long = "filter", value_name = "EXPR", value_parser = filter)]
    pub filters: Vec<String>,

    /// Record only these CPUs: 0,2-3
    #[arg(short = 'C', long = "cpu", value_name = "LIST")]
    pub cpus: Option<String>,

    /// Record only these processes
    ///
    /// All threads of these processes, and the processes they start.
    #[arg(short, long = "pid", value_name = "PID", value_delimiter = ',')]
    pub pids: Vec<u32>,

    /// Record only tasks in this cgroup and those below it
    ///
    /// A path in the v2 hierarchy (/system.slice/ssh.service, as in /proc/PID/cgroup) or in its mount; or a container:
    /// its name, or the begin of its ID. Several are given with --cgroup each.
    #[arg(hide_short_help = true)]
    #[arg(long = "cgroup", value_name = "CGROUP")]
    pub cgroups: Vec<String>,

    /// Record calls of these kernel functions
    ///
    /// PATTERN has *, ? and [...]. PATTERN:mod:MODULE matches functions of a loaded module, :mod:MODULE all of
    /// them; @FILE names functions in a file, one per line. Several patterns are separated by commas, or given with
    /// -T each. Without -e nothing else is recorded.
    #[command(flatten)]
    pub functions: FunctionArgs,
}

/// The choice of kernel functions to trace.
#[derive(Debug, Args)]
pub struct FunctionArgs {
    /// Record calls of these kernel functions
    ///
    /// PATTERN has *, ? and [...]. PATTERN:mod:MODULE matches functions of a loaded module, :mod:MODULE all of them;
    /// @FILE names functions in a file, one per line. Several patterns are separated by commas, or given with -T
    /// each. Without -e nothing else is recorded.
    #[arg(short = 'T', long = "trace-funcs", value_name = "PATTERN")]
    #[arg(value_delimiter = ',', value_parser = function)]
    #[arg(add = ArgValueCompleter::new(complete::functions))]
    pub functions: Vec<String>,

    /// Record calls, returns and durations
    ///
    /// Like -T, with the return and the duration of each call: for `rtrace report --graph`.
    #[arg(short = 'G', long = "graph-funcs", value_name = "PATTERN")]
    #[arg(value_delimiter = ',', value_parser = function, conflicts_with = "functions")]
    #[arg(add = ArgValueCompleter::new(complete::functions))]
    pub graph: Vec<String>,

    /// Exclude these functions from -T and -G
    #[arg(hide_short_help = true)]
    #[arg(short = 'N', long = "notrace-funcs", value_name = "PATTERN")]
    #[arg(value_delimiter = ',', value_parser = function)]
    #[arg(add = ArgValueCompleter::new(complete::functions))]
    pub notrace: Vec<String>,

    /// Maximum depth of calls in a graph
    ///
    /// 1 records only the outermost calls.
    #[arg(hide_short_help = true)]
    #[arg(
        short = 'D',
        long = "graph-depth",
        value_name = "N",
        requires = "graph",
        conflicts_with = "functions"
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub max_depth: Option<u32>,
}

/// All settings: the choice of events, the values recorded with them, and the channels.
#[derive(Debug, Args)]
pub struct SetupArgs {
    #[command(flatten)]
    pub choice: ChoiceArgs,

    /// Record the -e and -x that follow in their own channel
    ///
    /// The channel has its own buffers of SIZExN, in MODE `discard` or `overwrite`. Size and mode that are not
    /// given are those of -b and --overwrite. Options before the first --channel belong to `channel0`.
    #[arg(hide_short_help = true)]
    #[arg(long = "channel", value_name = "NAME[:SIZExN][:MODE]")]
    pub channels: Vec<ChannelArg>,

    /// Record call stacks, and their symbols
    ///
    /// Each event gets the call stacks of kernel and program. `rtrace record` also saves the names of the functions
    /// in them.
    #[arg(short = 'g', long)]
    pub call_graph: bool,

    /// Record these values with each event: tid,comm
    ///
    /// pid, tid, ppid, vpid, vtid, comm, prio, nice, cpu, cgroup_id; uid, euid, suid, gid, egid, sgid, vuid, veuid,
    /// vsuid, vgid, vegid, vsgid; cgroup_ns, ipc_ns, mnt_ns, net_ns, pid_ns, time_ns, user_ns, uts_ns;
    /// need_reschedule, preemptible, interruptible; callstack-kernel, callstack-user; perf:cpu:cycles,
    /// perf:cpu:page-faults and other counters of perf. `rtrace list --contexts` lists all.
    #[arg(long = "context", value_name = "NAME", value_delimiter = ',')]
    #[arg(add = ArgValueCompleter::new(complete::contexts))]
    pub contexts: Vec<String>,

    /// Count in a map: a recipe of `rtrace count`, a file of maps, or 'NAME EVENT by KEY ...'
    ///
    /// The kernel counts the map's events, whether they are recorded or not. `rtrace record` saves the numbers with the
    /// trace, for `rtrace report --maps`. See rtrace-maps(7).
    #[arg(hide_short_help = true)]
    #[arg(long = "map", value_name = "MAP")]
    #[arg(add = ArgValueCompleter::new(complete::recipes))]
    pub maps: Vec<String>,

    /// Record the initial state: threads, open files, devices
    ///
    /// The events go to a channel `state` of their own. See `rtrace state --help`.
    #[arg(hide_short_help = true)]
    #[arg(long)]
    pub state: bool,

    /// Channel that records markers (`rtrace mark`), or `none` [default: channel0]
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "CHANNEL")]
    pub marker_channel: Option<String>,

    /// Samples per second on each CPU, if -e picks samples (-e profile) [default: 99]
    #[arg(hide_short_help = true)]
    #[arg(short = 'F', long = "freq", value_name = "HZ", value_parser = frequency)]
    pub sample_freq: Option<u32>,

    /// Size of an AUX area for each channel and CPU
    ///
    /// A power of two, with K, M, G. Other modules write raw bytes there; -e picks their events, by subsystem or
    /// name.
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "SIZE", value_parser = aux_size)]
    pub aux_size: Option<u64>,

    /// Whether a snapshot frees its memory, or keeps it for the next snapshot [default: free]
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "HOW", value_parser = ["free", "keep"])]
    pub snapshot_memory: Option<String>,

    /// Side that pays for the order of memory accesses [default: auto]
    ///
    /// The reader interrupts the writer's CPU for each packet, or the writer executes a barrier. auto: the writer
    /// on isolated CPUs.
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "SIDE", value_parser = ["auto", "reader", "writer"])]
    pub barrier: Option<String>,

    /// Trace clock, by its name in debugfs' rtrace/clock
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "CLOCK")]
    pub clock: Option<String>,

    /// Read events, filters, channels and buffers from a TOML file
    ///
    /// See rtrace.toml(5) and samples/*.toml. The file also names the session. Contexts, CPUs, processes, cgroups,
    /// clock and marker channel of the command line replace those of the file.
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = [
        "events", "exclude", "filters", "buffer", "overwrite", "channels", "functions", "graph",
        "notrace"
    ])]
    pub config: Option<PathBuf>,
}
