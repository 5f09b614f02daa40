// SPDX-License-Identifier: GPL-2.0

//! What is recorded, as typed: the options that `rtrace record`, `rtrace start` and `rtrace trace` share.

use crate::session::channels::ChannelArg;
use clap::{ArgMatches, Args};
use control::BufferSize;
use std::ops::Range;
use std::path::PathBuf;
use system::quantity;

/// Which events, whose, and how large the buffers are.
#[derive(Debug, Args)]
pub struct ChoiceArgs {
    /// Record these events: SYSTEM:EVENT, EVENT or SYSTEM, by rtrace's names or ftrace's and
    /// perf's, with *, ? and [...]. The name of a system call is its begin and its end. Several are separated by commas, or given with -e each. Where the
    /// system is named, those of ftrace's are meant, too, that rtrace takes from perf
    #[arg(short, long = "event", value_name = "PATTERN", value_delimiter = ',')]
    #[arg(value_parser = pattern)]
    pub events: Vec<String>,

    /// But not these (also as -e '!PATTERN'). Without -e: all events but these
    #[arg(
        short = 'x',
        long = "exclude",
        value_name = "PATTERN",
        value_delimiter = ','
    )]
    #[arg(value_parser = pattern)]
    pub exclude: Vec<String>,

    /// Buffer of each CPU: N sub-buffers of SIZE bytes (with K, M, G), both powers of two
    #[arg(short, long, value_name = "SIZExN")]
    pub buffer: Option<BufferSize>,

    #[arg(skip)]
    pub places: Places,

    /// Of the events of the -e before it, record only those of which EXPR is true, in ftrace's
    /// language: 'prev_prio < 0 && next_comm ~ "kworker*"'. Names are the event's fields, and
    /// contexts
    #[arg(long = "filter", value_name = "EXPR", value_parser = filter)]
    pub filters: Vec<String>,

    /// Record these CPUs only: 0,2-3
    #[arg(short = 'C', long = "cpu", value_name = "LIST")]
    pub cpus: Option<String>,

    /// Record these processes only: all their threads, and what they start
    #[arg(short, long = "pid", value_name = "PID", value_delimiter = ',')]
    pub pids: Vec<u32>,

    /// Record what tasks in this cgroup do only, and in those below it: a path in the v2 hierarchy
    /// (/system.slice/ssh.service, as in /proc/PID/cgroup) or where that is mounted. Several are
    /// given with --cgroup each
    #[arg(long = "cgroup", value_name = "PATH")]
    pub cgroups: Vec<String>,

    #[command(flatten)]
    pub functions: FunctionArgs,
}

/// Which functions of the kernel are traced.
#[derive(Debug, Args)]
pub struct FunctionArgs {
    /// Record calls of the kernel functions whose names match PATTERN, with *, ? and [...]
    ///
    /// PATTERN:mod:MODULE matches functions of a loaded module, :mod:MODULE all of them; @FILE names functions in
    /// a file, one per line. Several patterns are separated by commas, or given with -T each. Without -e nothing
    /// else is recorded.
    #[arg(short = 'T', long = "trace-funcs", value_name = "PATTERN")]
    #[arg(value_delimiter = ',', value_parser = function)]
    pub functions: Vec<String>,

    /// The same with returns and durations, for `rtrace report --graph`
    #[arg(short = 'G', long = "graph-funcs", value_name = "PATTERN")]
    #[arg(value_delimiter = ',', value_parser = function, conflicts_with = "functions")]
    pub graph: Vec<String>,

    /// Exclude these functions from -T and -G
    #[arg(short = 'N', long = "notrace-funcs", value_name = "PATTERN")]
    #[arg(value_delimiter = ',', value_parser = function)]
    pub notrace: Vec<String>,

    /// Maximum depth of calls in a graph: 1 is the outermost calls only
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

/// All that can be chosen: also what is recorded beside the events, and into what.
#[derive(Debug, Args)]
pub struct SetupArgs {
    #[command(flatten)]
    pub choice: ChoiceArgs,

    /// Record the -e and -x that follow (up to the next --channel) in a channel of their own, with
    /// its own buffers: of SIZExN, in MODE `discard` or `overwrite`; what is not given is as -b and
    /// --overwrite say. Those before the first --channel are recorded in `channel0`
    #[arg(long = "channel", value_name = "NAME[:SIZExN][:MODE]")]
    pub channels: Vec<ChannelArg>,

    /// Record call stacks of kernel and programs with each event; `record` also saves their symbols
    #[arg(short = 'g', long)]
    pub call_graph: bool,

    /// Record these beside each event: pid, tid, ppid, vpid, vtid, comm, prio, nice, cpu, cgroup_id;
    /// uid, euid, suid, gid, egid, sgid, vuid, veuid, vsuid, vgid, vegid, vsgid; cgroup_ns, ipc_ns,
    /// mnt_ns, net_ns, pid_ns, time_ns, user_ns, uts_ns; need_reschedule, preemptible, interruptible;
    /// callstack-kernel, callstack-user; perf:cpu:cycles, perf:cpu:page-faults and others of perf's.
    /// `rtrace list --contexts` has all
    #[arg(long = "context", value_name = "NAME", value_delimiter = ',')]
    pub contexts: Vec<String>,

    /// Record what there is at the start, too: threads, open files, devices and more (see `rtrace state
    /// --help`), in a channel `state` of its own
    #[arg(long)]
    pub state: bool,

    /// Record markers (`rtrace mark`) in this channel, or in `none` [default: channel0]
    #[arg(long, value_name = "CHANNEL")]
    pub marker_channel: Option<String>,

    /// Samples per second on each CPU, if -e picks samples (-e profile) [default: 99]
    #[arg(short = 'F', long = "freq", value_name = "HZ", value_parser = frequency)]
    pub sample_freq: Option<u32>,

    /// Give each channel an AUX area of so many bytes on each CPU (a power of two, with K, M, G), for
    /// what other modules write beside events: -e picks their events, by subsystem or name
    #[arg(long, value_name = "SIZE", value_parser = aux_size)]
    pub aux_size: Option<u64>,

    /// Whether a snapshot frees its memory, or keeps it for the next snapshot [default: free]
    #[arg(long, value_name = "HOW", value_parser = ["free", "keep"])]
    pub snapshot_memory: Option<String>,

    /// The side that pays for the order of memory accesses: the reader interrupts the writer's CPU for
    /// each packet, or the writer executes a barrier; auto: the writer on isolated CPUs [default: auto]
    #[arg(long, value_name = "SIDE", value_parser = ["auto", "reader", "writer"])]
    pub barrier: Option<String>,

    /// Trace clock, by its name in debugfs' rtrace/clock
    #[arg(long, value_name = "CLOCK")]
    pub clock: Option<String>,

    /// Take all this, and the session's name, from a TOML file (see the user guide, and
    /// samples/*.toml). Contexts, CPUs, processes, cgroups, clock and channel of markers that are given
    /// beside it go before the file's
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = [
        "events", "exclude", "filters", "buffer", "overwrite", "channels", "functions", "graph",
        "notrace"
    ])]
    pub config: Option<PathBuf>,
}

/// A size of an AUX area, as the kernel takes it.
pub fn aux_size(text: &str) -> Result<u64, String> {
    match quantity::size(text)? {
        size if size == 0 || size.is_power_of_two() && size >= 4096 => Ok(size),
        _ => Err("neither 0 nor a power of two of at least 4K".to_owned()),
    }
}

/// After how many `--channel`s each pattern stands.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Each of -e.
    pub events: Vec<usize>,
    /// Each of -x.
    pub exclude: Vec<usize>,
    /// Of each --filter: the patterns of the -e before it.
    pub filters: Vec<Range<usize>>,
}

impl Places {
    /// As they stand in the command line of a subcommand.
    pub fn of(matches: &ArgMatches) -> Self {
        let indices = |id| -> Vec<usize> { matches.indices_of(id).into_iter().flatten().collect() };
        // Not every command can make some.
        let channels = match matches.try_contains_id("channels") {
            Ok(_) => indices("channels"),
            Err(_) => Vec::new(),
        };
        let places = |id| {
            let before = |at: usize| channels.iter().filter(|channel| **channel < at).count();
            indices(id).into_iter().map(before).collect()
        };
        Self {
            events: places("events"),
            exclude: places("exclude"),
            filters: filters(matches),
        }
    }
}

/// The patterns of the -e that stands before each --filter; none, if none does.
fn filters(matches: &ArgMatches) -> Vec<Range<usize>> {
    let indices = |id| -> Vec<usize> { matches.indices_of(id).into_iter().flatten().collect() };
    let mut options = Vec::new();
    let mut end = 0;
    for values in matches
        .get_occurrences::<String>("events")
        .into_iter()
        .flatten()
    {
        let begin = end;
        end += values.count();
        options.push(begin..end);
    }
    let events = indices("events");
    let before = |filter: usize| {
        let mut before = options.iter().rev();
        let found = before.find(|values| events[values.start] < filter);
        found.cloned().unwrap_or(0..0)
    };
    indices("filters").into_iter().map(before).collect()
}

/// Parses one pattern of events or functions, the text between two commas. White space would end it in `set_event`.
pub fn pattern(word: &str) -> Result<String, &'static str> {
    if word.is_empty() || word == "!" {
        Err("a pattern is missing")
    } else if word.contains(char::is_whitespace) {
        Err("white space in a pattern; several are separated by commas")
    } else {
        Ok(word.to_owned())
    }
}

/// Parses the number of samples per second.
pub fn frequency(word: &str) -> Result<u32, &'static str> {
    let frequency = word.parse().ok();
    frequency
        .filter(|frequency| (1..=100_000).contains(frequency))
        .ok_or("no number of samples per second from 1 to 100000; -T traces functions")
}

/// Parses one pattern of functions.
fn function(word: &str) -> Result<String, &'static str> {
    if word.starts_with('!') {
        return Err("-N excludes functions");
    }
    pattern(word)
}

/// Parses one filter. The kernel takes an empty filter and `0` for "no filter", and would record all events.
pub fn filter(expression: &str) -> Result<String, &'static str> {
    match expression.trim() {
        "" => Err("the filter is empty; without --filter all events are recorded"),
        "0" => Err("a filter compares a field with a value; `0` would record all events"),
        _ => Ok(expression.to_owned()),
    }
}
