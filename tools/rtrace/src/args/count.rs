// SPDX-License-Identifier: GPL-2.0

//! `rtrace count`, as typed.

use super::{rows, usdt, RangeArgs};
use crate::complete;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use record::session::values::{filter, function, pattern};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use system::quantity;

/// Count events by key, in the kernel while a command runs, or in a trace
///
/// The kernel counts events, adds up their values and makes histograms, and records nothing. At the end (of the command,
/// or at Ctrl-C), or every --interval, a table is printed: the rows with the largest first sum, or the largest count,
/// first.
///
/// COMMAND is a stopwatch: events of all processes count until it ends. With --only, only its own events count.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  rtrace count -e write --by comm -- sleep 3               who writes
  rtrace count -e 'read,write' --by event,comm --sum ret   the bytes, too
  rtrace count -e write --hist ret -d 1s                   the sizes of writes, every second
  rtrace count -e sched_switch --by prev_comm -n 5 -- make
  rtrace count -e syscalls --by event -p 1234              the calls of a process
  rtrace count -e openat --hist duration                   how long a system call takes
  rtrace count -e openat --by filename --hist duration     the same, for each file
  rtrace count -e block_rq_complete --hist duration --begin block_rq_issue --match dev,sector
  rtrace count -T 'vfs_*' -- make                          the calls of kernel functions
  rtrace count -G vfs_read --hist duration -- make         how long they take
  rtrace count -k 'vfs_read(count)' --hist count -- make   their arguments
  rtrace count -u 'postgres:query__start(q=str(arg1))' --by q   the queries of a database
  rtrace count --recipe offcputime -- make                 the time off CPU, by program
  rtrace count -i trace -e write --by comm --sum ret       of a trace that was recorded
  rtrace count --recipes                                   all recipes, to copy and change

Exit codes: as of `rtrace record`.")]
pub struct CountArgs {
    /// Count these events: names or patterns
    ///
    /// As of `rtrace record -e`. The name of a system call means its begin, or its end if its result (`ret`) is used.
    #[arg(short, long = "event", value_name = "PATTERN", value_delimiter = ',')]
    #[arg(value_parser = pattern)]
    #[arg(required_unless_present_any = ["recipe", "recipes", "probes", "usdt", "functions", "graph"])]
    #[arg(add = ArgValueCompleter::new(complete::events))]
    pub events: Vec<String>,

    /// Count calls of a function, with arguments
    ///
    /// As of `rtrace record -k`. With `-> ret`, `duration_ns` is a field.
    #[arg(hide_short_help = true)]
    #[arg(short = 'k', long = "probe", value_name = "SPEC", conflicts_with_all = ["recipe", "functions", "graph"])]
    pub probes: Vec<String>,

    /// Count hits of a probe (USDT) in the code of a program or library
    ///
    /// As of `rtrace record -u`. The arguments are fields: arg1, arg2, ...
    #[arg(hide_short_help = true)]
    #[arg(short = 'u', long = "usdt", value_name = "SPEC", value_parser = usdt)]
    #[arg(conflicts_with_all = ["recipe", "functions", "graph"])]
    pub usdt: Vec<String>,

    /// Count calls of these kernel functions
    ///
    /// As of `rtrace record -T`. The default of --by is the function, `ip`.
    #[arg(short = 'T', long = "trace-funcs", value_name = "PATTERN")]
    #[arg(value_delimiter = ',', value_parser = function, conflicts_with = "events")]
    #[arg(add = ArgValueCompleter::new(complete::functions))]
    pub functions: Vec<String>,

    /// Count returns of these kernel functions
    ///
    /// `duration` is the time of the call. The default of --by is the function, `func`.
    #[arg(short = 'G', long = "graph-funcs", value_name = "PATTERN")]
    #[arg(value_delimiter = ',', value_parser = function, conflicts_with_all = ["events", "functions", "begin"])]
    #[arg(add = ArgValueCompleter::new(complete::functions))]
    pub graph: Vec<String>,

    /// Have a row for each value of these keys: comm,cpu
    ///
    /// A key is a field of the events, a context (`rtrace list --contexts`), `event`, the name of the event, or the
    /// call stack of the kernel or the user, `kstack` and `ustack`; or `container`, the container of the running task's
    /// cgroup. If `duration` is measured, a key that the end lacks is a field of the begin. At most four keys.
    #[arg(long, value_name = "KEY", value_delimiter = ',', value_parser = name)]
    #[arg(num_args = 1)]
    pub by: Vec<String>,

    /// Add up this field
    #[arg(long, value_name = "FIELD", value_parser = name)]
    pub sum: Vec<String>,

    /// Find the smallest value of this field
    #[arg(hide_short_help = true, long, value_name = "FIELD", value_parser = name)]
    pub min: Vec<String>,

    /// Find the largest value of this field
    #[arg(hide_short_help = true, long, value_name = "FIELD", value_parser = name)]
    pub max: Vec<String>,

    /// Make a histogram of this field, for each key
    ///
    /// A bucket is at most 1/8 as wide as its smallest number.
    #[arg(long, value_name = "FIELD", value_parser = name)]
    pub hist: Option<String>,

    /// Measure `duration` from these events
    ///
    /// The time since the latest of these events with the same values of --match is then a field `duration`. For
    /// system calls alone, the default is their begin.
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "PATTERN", value_delimiter = ',', value_parser = pattern)]
    #[arg(add = ArgValueCompleter::new(complete::events))]
    pub begin: Vec<String>,

    /// Values that are the same at the begin and the end of a duration [default: tid]
    ///
    /// At most two. If they have other names at the end, those follow a colon: tid:next_tid
    #[arg(hide_short_help = true)]
    #[arg(long = "match", value_name = "VALUES[:VALUES]", requires = "begin")]
    pub matched: Option<String>,

    /// Count as this recipe does: a name, or a file
    ///
    /// --recipes prints all recipes with their names.
    /// Each line of the file is a map, as for `set_map` in debugfs, or `-k SPEC`, whose event is in the subsystem
    /// `probes`. `#` begins a comment. EVENTS stands for the events of -e, FIELD for that of --hist.
    #[arg(long, value_name = "RECIPE", conflicts_with_all = [
        "by", "sum", "min", "max", "filter", "size", "begin"
    ])]
    #[arg(add = ArgValueCompleter::new(complete::recipes))]
    pub recipe: Option<String>,

    /// Print all recipes
    #[arg(long, exclusive = true)]
    pub recipes: bool,

    /// Count events only if EXPR is true
    ///
    /// The language is ftrace's; see rtrace-filter(7).
    #[arg(long, value_name = "EXPR", value_parser = filter)]
    pub filter: Option<String>,

    /// Count only events of these processes
    ///
    /// All threads of these processes, and, without -i, the processes they start.
    #[arg(short, long = "pid", value_name = "PID", value_delimiter = ',')]
    pub pids: Vec<u32>,

    /// Count only events of tasks in this cgroup and those below it
    ///
    /// As of `rtrace record --cgroup`: a path, or a container.
    #[arg(hide_short_help = true)]
    #[arg(long = "cgroup", value_name = "CGROUP")]
    pub cgroups: Vec<String>,

    /// Count only events of COMMAND and what it starts
    #[arg(long, requires = "command", conflicts_with = "pids")]
    pub only: bool,

    /// Count the events of the trace in DIR
    ///
    /// The trace may be one of another tracer. Without DIR: the current directory if that is a trace, or the newest
    /// trace in it.
    #[arg(short, long, value_name = "DIR", num_args = 0..=1)]
    #[arg(add = ArgValueCompleter::new(complete::traces))]
    #[arg(conflicts_with_all = [
        "probes", "usdt", "functions", "graph", "only", "cgroups", "interval", "size", "duration", "command"
    ])]
    pub input: Option<Option<PathBuf>>,

    #[command(flatten)]
    pub range: RangeArgs,

    /// Print a table every DURATION
    ///
    /// It has the counts since the previous table. --min and --max need --cumulative.
    #[arg(short = 'd', long, value_name = "DURATION", value_parser = quantity::duration)]
    pub interval: Option<Duration>,

    /// With --interval: print the counts since the beginning
    #[arg(hide_short_help = true)]
    #[arg(long, requires = "interval")]
    pub cumulative: bool,

    /// Number of keys that the kernel has room for, on each CPU
    ///
    /// Events of other keys are counted together.
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "N", default_value_t = rtrace_input::map::DEFAULT_SIZE)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(rtrace_input::map::MAX_SIZE)))]
    pub size: u32,

    /// Rows in the table; 0 for all
    #[arg(short = 'n', long, value_name = "ROWS", default_value = "20", value_parser = rows)]
    pub rows: usize,

    /// Order of the rows: a column, the largest number first, or a key
    ///
    /// As the table's head names it: count, 'sum(ret)', comm. The default is the first column after the count.
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "COLUMN")]
    pub sort: Option<String>,

    /// Print each table as a line of JSON
    ///
    /// It has all rows.
    #[arg(long)]
    pub json: bool,

    /// End after this time, as 10s
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration)]
    pub duration: Option<Duration>,

    /// Command to run meanwhile
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Parses the name of a field or context.
fn name(word: &str) -> Result<String, &'static str> {
    match !word.is_empty() && word.chars().all(rtrace_input::rest::is_of_name) {
        true => Ok(word.to_owned()),
        false => Err("expected the name of a field or context"),
    }
}
