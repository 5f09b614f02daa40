// SPDX-License-Identifier: GPL-2.0

//! `rtrace trace`, as typed.

use super::{comm, rows, ChoiceArgs, NetworkArgs};
use crate::complete;
use clap::builder::RangedU64ValueParser;
use clap::{ArgGroup, Args};
use clap_complete::engine::ArgValueCompleter;
use network::parse_address;
use std::ffi::OsString;
use std::path::PathBuf;
use terminal::date::PointInTime;

/// Number of bytes of a call's data that are shown without -s.
pub const SHOWN_BYTES: usize = 32;

/// Print the system calls of COMMAND, or other events, a line each; without COMMAND, those of all tasks
///
/// Without -e and -x, the system calls of COMMAND and of what it starts are printed, or without COMMAND those of all
/// tasks, until Ctrl-C. With COMMAND and -e, these events of the same tasks are printed. In -e and -x the name of a
/// system call, or of its begin or end (sys_exit_openat), stands for the call. `mmap:*` picks the subsystem of that
/// name.
///
/// A line has the local time of the day, the duration of a system call, the thread's name and id, and what happened. A
/// system call has one line, where it ends. The time is that of its end, so lines stand in order of time.
///
/// With all calls, signals that reach a thread are printed, as `--- SIGTERM {...} ---`, and ends of threads, as `+++
/// exited with 0 +++`. -e signal_deliver and -e sched_process_exit choose them beside some calls.
///
/// A descriptor is followed by its file, if known: from the calls that opened, copied and inherited it, and live from
/// /proc. For that, calls to close, dup2, dup3, close_range and execve must be among the events (with -e it is enough
/// to name close).
///
/// With all calls, requests of io_uring have lines as calls do, where their results are posted. That needs the module
/// rtrace-events; without it, use `-e syscalls,io_uring`.
///
/// A call that has not ended when the trace does, or whose end was lost, is `<unfinished ...>`. A call whose begin is
/// not in the trace is `<... resumed>`. `LOST N events on CPU K` stands where events are missing, `DAMAGED` where bytes
/// of the trace cannot be read. A line is printed at most 0.1 s late.
///
/// If all tasks are traced, rtrace leaves out its own threads. If the lines go to a terminal, rtrace also leaves out
/// the programs that show the terminal (sshd, an xterm, sudo). Otherwise each line would cause new lines without end.
///
/// --filter and --failed are for completed calls: an expression may compare arguments and the result (`ret`)
/// together. A call whose end the trace lacks has no result.
///
/// With -T or -G the calls of functions are printed as `rtrace report --graph` does.
///
/// The last line, on standard error, is `N events recorded, M lost`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  rtrace trace -- ls -l                             what strace -f shows, with little delay for ls
  rtrace trace -p 1234 -e openat,unlinkat           which files a process opens and removes
  rtrace trace -e sched_switch --filter 'next_comm == \"sshd\"'
  rtrace trace --failed -p 1234                     the calls that fail, with their arguments
  rtrace trace -e %file --filter 'ret == -13' -- make     files that make may not use
  rtrace trace -s 80 -e read,write -p 1234          what a process reads and writes
  rtrace trace -k -e openat -- ls                   which functions open files
  rtrace trace -c -- make                           nothing but the table at the end
  rtrace trace -i rtrace-20261120-230000            a trace that was recorded
  rtrace trace --connect collector:5344 --of web1 --plain    one that comes in there

Exit codes:
  that of COMMAND; 128 + N if signal N ended it; 0 without COMMAND
  1    the trace is damaged; what can be read is shown
  125  rtrace itself failed
  126  COMMAND cannot be run
  127  COMMAND was not found
  2    wrong usage")]
#[command(group(ArgGroup::new("table").args(["summary", "summary_only"])))]
#[command(group(ArgGroup::new("network").args(["connect"])))]
pub struct ShowArgs {
    #[command(flatten)]
    pub choice: ChoiceArgs,

    /// Print the trace in DIR, or the newest one here
    ///
    /// Without DIR: the current directory if that is a trace, or the newest trace in it.
    #[arg(short, long, value_name = "DIR", num_args = 0..=1)]
    #[arg(add = ArgValueCompleter::new(complete::traces))]
    #[arg(conflicts_with_all = [
        "buffer", "cpus", "cgroups", "functions", "graph",
        "notrace", "command"
    ])]
    pub input: Option<Option<PathBuf>>,

    /// With -i: only what happened from TIME on: 23:00:01, or +5s after the trace's begin
    ///
    /// A time of the day is the first one in the trace; 2026-11-27T23:00:01 names the day. A number is a time of the
    /// trace's clock in seconds.
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "TIME", requires = "input")]
    pub from: Option<PointInTime>,

    /// With -i: only what happened up to TIME
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "TIME", requires = "input")]
    pub to: Option<PointInTime>,

    /// With -i: only what threads of this name did: a name, or a pattern with *, ? and [...]
    #[arg(hide_short_help = true)]
    #[arg(
        long = "comm",
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = comm,
        requires = "input"
    )]
    pub comms: Vec<String>,

    /// Print the trace that a receiver (`rtraced --listen`) gets at this moment, from its beginning
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "PATH|HOST:PORT", value_parser = parse_address)]
    #[arg(conflicts_with_all = [
        "input", "buffer", "cpus", "cgroups", "functions",
        "graph", "notrace", "command"
    ])]
    pub connect: Option<String>,

    /// For --connect: the trace of this machine, or of this name (HOST-UUID), once it begins; without it, the one that
    /// began last
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "NAME", requires = "connect")]
    pub of: Option<String>,

    #[command(flatten)]
    pub network: NetworkArgs,

    /// Print only the calls that fail (strace -Z)
    #[arg(short = 'Z', long, conflicts_with_all = ["functions", "graph", "summary", "summary_only"])]
    pub failed: bool,

    /// Print the program's call stack below each line (strace -k)
    ///
    /// A line of a stack has the file, the function with the offset in it, and the offset in the file. The last line says
    /// why callers are missing, if some are: [cut: no table yet]. With -i, the trace needs the context callstack-user
    /// (`rtrace record -g`).
    #[arg(hide_short_help = true)]
    #[arg(short = 'k', long, conflicts_with_all = ["functions", "graph", "summary_only", "connect"])]
    pub stack_trace: bool,

    /// Print up to N bytes of the data of calls such as read, writev, sendto and getrandom (at most 244)
    ///
    /// Each of these calls then has one more event, which is recorded too. Of a trace that has these events, 32 bytes are
    /// printed without this option.
    #[arg(short = 's', long, value_name = "N", conflicts_with_all = ["functions", "graph", "summary_only"])]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(0..=244))]
    pub bytes: Option<usize>,

    /// Print only a table of the calls, at the end
    ///
    /// The table is that of `rtrace report --syscalls`.
    #[arg(short = 'c', long, conflicts_with_all = ["functions", "graph"])]
    pub summary_only: bool,

    /// Print the lines, and the table of -c at the end
    #[arg(hide_short_help = true)]
    #[arg(long, conflicts_with_all = ["functions", "graph", "summary_only"])]
    pub summary: bool,

    /// With -c: print the table as one JSON object, with all rows
    #[arg(hide_short_help = true)]
    #[arg(long, requires = "summary_only", conflicts_with = "rows")]
    pub json: bool,

    /// Rows in the table; 0 for all
    #[arg(hide_short_help = true)]
    #[arg(short = 'n', long, value_name = "ROWS", default_value = "15", value_parser = rows)]
    #[arg(requires = "table")]
    pub rows: usize,

    /// Print to FILE, not to standard output
    ///
    /// COMMAND uses standard output, too. FILE must be new unless --force.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(hide_short_help = true)]
    #[arg(long, requires = "output")]
    pub force: bool,

    /// Command to run and trace
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
