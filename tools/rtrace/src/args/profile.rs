// SPDX-License-Identifier: GPL-2.0

//! `rtrace profile`, as typed.

use super::{rows, AccessArgs};
use clap::{Args, ValueEnum};
use control::BufferSize;
use record::session::values::frequency;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use system::quantity;

/// Sample what the CPUs do while a command runs, or until Ctrl-C
///
/// The kernel's perf interrupts each CPU at the given frequency. Each sample is an event with process, thread,
/// name, and the call stacks of kernel and program. At the end, the functions with most samples are printed. DIR
/// has the trace, for `rtrace report --profile` and `rtrace export flamegraph`, `pprof`, `folded` or `perf-script`.
///
/// With COMMAND, only COMMAND and the processes it starts are sampled, unless -a is given.
///
/// Stacks of programs are taken by the unwind tables of their files; programs need no frame pointers. A stack that lacks
/// callers begins with the reason, as [cut: no table yet]. The last lines say how many stacks are whole. Samples can be
/// recorded beside other events: `rtrace record -g -e profile -e sched`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  rtrace profile -- make                        what takes so long
  rtrace profile -F 999 -p 1234 -o DIR          a process, until Ctrl-C
  rtrace profile --duration 10s -o DIR          everything, for ten seconds
  rtrace export flamegraph -o graph.svg DIR

Exit codes: as of `rtrace record`.")]
pub struct ProfileArgs {
    /// Samples per second on each CPU, 100000 at most
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = 99, value_parser = frequency)]
    pub freq: u32,

    /// Trigger of a sample: cycles or cpu-clock
    ///
    /// `cycles` counts cycles of the processor, also where interrupts are off; `cpu-clock` is a timer. The default is
    /// cycles where the machine can count them.
    #[arg(long, value_name = "EVENT", value_enum)]
    pub by: Option<Pace>,

    /// Sample only these processes
    ///
    /// All threads of these processes, and the processes they start.
    #[arg(short, long = "pid", value_name = "PID", value_delimiter = ',')]
    pub pids: Vec<u32>,

    /// Sample only these CPUs: 0,2-3
    #[arg(short = 'C', long = "cpu", value_name = "LIST")]
    pub cpus: Option<String>,

    /// Sample all processes, not COMMAND only
    #[arg(short, long, conflicts_with = "pids")]
    pub all_cpus: bool,

    /// End after this time, as 10s
    ///
    /// The recording ends after this time or with COMMAND. A COMMAND that still runs is waited for.
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration)]
    pub duration: Option<Duration>,

    /// Buffer of each CPU, as 1Mx4
    ///
    /// N sub-buffers of SIZE bytes (with K, M, G), both powers of two.
    #[arg(short, long, value_name = "SIZExN")]
    pub buffer: Option<BufferSize>,

    /// Directory for the trace: new or empty
    ///
    /// The default is ./rtrace-YYYYMMDD-HHMMSS, in UTC.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,

    /// Ask the servers in $DEBUGINFOD_URLS for symbols that this machine lacks
    #[arg(hide_short_help = true)]
    #[arg(long)]
    pub debuginfod: bool,

    /// Rows in each table; 0 for all
    #[arg(short = 'n', long, value_name = "ROWS", default_value = "15", value_parser = rows)]
    pub rows: usize,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub access: AccessArgs,

    /// Command to run meanwhile
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Trigger of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Pace {
    /// Cycles of the processor.
    Cycles,
    /// A timer.
    CpuClock,
}

impl Pace {
    /// The triggers, the most complete one first.
    pub const ALL: [Self; 2] = [Self::Cycles, Self::CpuClock];

    /// The event that the trigger fires.
    pub fn event(self) -> &'static str {
        match self {
            Self::Cycles => "profile:profile_cycles",
            Self::CpuClock => "profile:profile_cpu_clock",
        }
    }
}
