// SPDX-License-Identifier: GPL-2.0

//! `rtrace record`, as typed.

use super::{usdt, AccessArgs, NetworkArgs, SetupArgs};
use clap::{ArgGroup, Args};
use network::parse_address;
use record::run::condition::Condition;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use store::Every;
use system::quantity;

/// Record the machine while COMMAND runs, or until Ctrl-C
///
/// With --only, COMMAND alone is recorded.
///
/// rtrace makes a session, runs COMMAND, stops the trace, writes it to DIR, and destroys the session. Other
/// sessions continue, and others may record at the same time. No daemon is needed. Without COMMAND, -p ends the
/// recording when its processes have ended. If COMMAND cannot be run, nothing is recorded and no DIR is left.
/// Without -e and -x, the module's default events are recorded. The last line is `N events recorded, M lost`.
///
/// With --session, rtrace records in that session, which must be stopped, and restores its settings afterwards. If
/// SIGKILL ends rtrace, its session `record-PID` and the session's memory remain until the next `rtrace record`, or
/// until `rtrace session destroy record-PID`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Channels:
  rtrace record -e sched --channel calls:4Mx4 -e syscalls --channel last:64Kx8:overwrite -e timer

  records scheduling in channel0, system calls in large buffers of their own, and only the newest
  events of timers: channels in overwrite mode are read at the end. The trace has a file
  CHANNEL_cpuN for each channel and CPU, which viewers show as one trace.

To another machine, where `rtraced --listen` writes it:
  rtrace record --connect collector:5344 --ca ca.pem --cert web1.pem --key web1.key -e sched -- make

Until something happens:
  rtrace record --overwrite --until 'event:sched:sched_switch if prev_prio < 0' -e sched
  rtrace record --overwrite --snapshot-on failure --snapshot-on 'log:BUG|WARNING' -- ./flaky-test

  The first ends at the first such switch, and writes the events before it. The second writes
  nothing if the test succeeds and the kernel reports no trouble.

Exit codes:
  that of COMMAND; 128 + N if signal N ended it; 0 without COMMAND
  124  events were lost, and --fail-on-loss was given (and COMMAND succeeded)
  125  rtrace itself failed: the trace is incomplete, or there is none
  126  COMMAND cannot be run
  127  COMMAND was not found
  2    wrong usage")]
#[command(group(ArgGroup::new("network").args(["connect"])))]
pub struct RecordArgs {
    #[command(flatten)]
    pub setup: SetupArgs,

    /// Record calls of a function, with arguments
    ///
    /// SPEC is a function of the kernel or of a program, and the names of its arguments and result to record (see
    /// `rtrace probe --help`). The event exists during the recording. Without -e nothing else is recorded.
    #[arg(short = 'k', long = "probe", value_name = "SPEC")]
    pub probes: Vec<String>,

    /// Record a probe (USDT) in a program's code
    ///
    /// SPEC is [EVENT=]WHERE:[PROVIDER:]NAME[(ARGUMENT, ...)]. WHERE is a file, the name of a program or library that
    /// runs or is in $PATH, or a PID, and stands for all processes that execute the file: -p chooses some of them. An
    /// ARGUMENT is arg1, arg2, ..., as in [NAME=]arg1[:TYPE]; str(arg1) is the text at that address. The default is all
    /// arguments. `rtrace list -u WHERE` lists the probes.
    #[arg(short = 'u', long = "usdt", value_name = "SPEC", value_parser = usdt)]
    pub usdt: Vec<String>,

    /// Save the names of all functions in call stacks with the trace
    ///
    /// They are then known after the next boot and on another machine. The recording also has the mappings of
    /// programs, without which their functions are unknown.
    #[arg(hide_short_help = true)]
    #[arg(long)]
    pub symbols: bool,

    /// Ask the servers in $DEBUGINFOD_URLS for symbols that this machine lacks
    #[arg(hide_short_help = true)]
    #[arg(long, requires = "symbols")]
    pub debuginfod: bool,

    /// Record only COMMAND and what it starts
    #[arg(long)]
    pub only: bool,

    /// Record all CPUs and processes: the default
    #[arg(hide_short_help = true)]
    #[arg(short, long, conflicts_with_all = ["only", "pids", "cpus", "cgroups"])]
    pub all_cpus: bool,

    /// End after this time, as 10s
    ///
    /// The recording ends after this time or with COMMAND. A COMMAND that still runs is waited for.
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration)]
    pub duration: Option<Duration>,

    /// End the recording when WHAT happens, or when COMMAND ends
    ///
    /// WHAT is event:PATTERN, event:'PATTERN if EXPR', 'slow:fsync > 50ms' (a system call, or a function as for -k, takes
    /// longer; the call is recorded, and without -e nothing else), log:REGEX (a line of the kernel log), 'map:NAME max >
    /// 50ms' (a value of a map of --map: count, sum, min, max), signal:USR1, signal:USR2, or failure: COMMAND fails, and
    /// not because of Ctrl-C or another signal to rtrace; otherwise no trace is kept. If --until is given several times,
    /// the first that happens counts. COMMAND continues and is waited for.
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "WHAT")]
    pub until: Vec<Condition>,

    /// Packets to record after an event of --until, on all CPUs together
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "PACKETS", requires = "until")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub after: Option<u64>,

    /// With --overwrite: write a snapshot each time WHAT happens
    ///
    /// The snapshots are DIR/1, DIR/2, ...; nothing else is written. WHAT is as for --until. The recording
    /// continues until COMMAND ends.
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "WHAT")]
    pub snapshot_on: Vec<Condition>,

    /// Write at most one snapshot in this time
    ///
    /// An event that fires sooner after a snapshot causes none, and is counted.
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "DURATION", requires = "snapshot_on")]
    #[arg(value_parser = quantity::duration)]
    pub snapshot_interval: Option<Duration>,

    /// End the recording after N snapshots
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "N", requires = "snapshot_on")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Directory for the trace: new or empty
    ///
    /// The default is ./rtrace-YYYYMMDD-HHMMSS, in UTC.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,

    /// Send the trace to a receiver (`rtraced --listen`), and write nothing here
    ///
    /// While the receiver is unreachable, the buffers fill. When the recording has ended, it is waited for 5 s.
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "PATH|HOST:PORT", value_parser = parse_address)]
    #[arg(conflicts_with_all = [
        "output", "direct", "rotate", "keep", "mode", "group", "symbols", "snapshot_on"
    ])]
    pub connect: Option<String>,

    #[command(flatten)]
    pub network: NetworkArgs,

    /// Keep the newest events (flight recorder)
    ///
    /// A full buffer overwrites its oldest events. The newest are written at the end.
    #[arg(long)]
    pub overwrite: bool,

    /// Write around the page cache (O_DIRECT)
    ///
    /// This takes less CPU time and no memory, but the writer waits for the disk at each packet. Some file systems
    /// do not support it.
    #[arg(hide_short_help = true)]
    #[arg(long)]
    pub direct: bool,

    /// Cut the trace into chunks of SIZE, or of a duration
    ///
    /// The chunks are DIR/chunk-000001, DIR/chunk-000002, ..., each a trace as soon as it has that name. The next chunk
    /// begins before the packets of one exceed SIZE (with K, M, G), or after each DURATION (as 10min). With DURATION, a
    /// chunk may be empty.
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "SIZE|TIME")]
    pub rotate: Option<Every>,

    /// Keep the newest N finished chunks, and remove older ones
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "N", requires = "rotate")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub keep: Option<u64>,

    /// Source of the events of programs (-e 'user.*'): rings or probes [default: rings]
    ///
    /// rings: from memory that a program shares with the module, in a channel `programs` of their own. It costs the program
    /// no call, but one that is faster than the module loses events. probes: by a call for each event.
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "SOURCE", value_parser = ["rings", "probes"], conflicts_with = "config")]
    pub source: Option<String>,

    #[command(flatten)]
    pub access: AccessArgs,

    /// Fail with exit code 124 if events were lost
    ///
    /// Discarded events count, with --overwrite too, and lost bytes of AUX areas.
    #[arg(hide_short_help = true)]
    #[arg(long)]
    pub fail_on_loss: bool,

    /// Command to run while recording
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
