// SPDX-License-Identifier: GPL-2.0

//! `rtrace record`, as typed.

use super::{AccessArgs, NetworkArgs, SetupArgs};
use crate::run::condition::Condition;
use clap::{ArgGroup, Args};
use network::parse_address;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use store::Every;
use system::quantity;

/// Record a trace while a command runs, or until Ctrl-C
///
/// Makes a session of its own, runs COMMAND, stops, writes everything to DIR, and destroys the
/// session: what other sessions record goes on, and others may record at the same time. Needs no
/// daemon. Without COMMAND, -p ends the recording when its processes have ended. If COMMAND cannot be run
/// nothing is recorded, and no DIR is left. Without -e and -x the
/// module's default events are recorded. The last line is `N events recorded, M lost`.
///
/// With --session it records in that session, which must be stopped, and puts its settings back as
/// they were. Killed by SIGKILL it leaves its session `record-PID`, and the memory of that, until
/// the next `rtrace record`, or `rtrace session destroy record-PID`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Channels:
  rtrace record -e sched --channel calls:4Mx4 -e syscalls --channel last:64Kx8:overwrite -e timer

  records scheduling in channel0, system calls in large buffers of their own, and of the timers
  the newest only: channels in overwrite mode are read at the end. The trace has a file
  CHANNEL_cpuN for each channel and CPU, which viewers show as one trace.

To another machine, where `rtraced --listen` writes it:
  rtrace record --connect collector:5344 --ca ca.pem --cert web1.pem --key web1.key -e sched -- make

Until something happens:
  rtrace record --overwrite --until 'event:sched:sched_switch if prev_prio < 0' -e sched
  rtrace record --overwrite --snapshot-on failure --snapshot-on 'log:BUG|WARNING' -- ./flaky-test

  The first ends at the first such switch, and writes what led to it. Of the second, nothing is
  written if neither the test fails nor the kernel complains.

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

    /// Record calls of a function of the kernel or of a program, too, and what SPEC names of its arguments and its
    /// result (see `rtrace probe --help`). The event is there as long as the recording. Without -e
    /// nothing else is recorded
    #[arg(short = 'k', long = "probe", value_name = "SPEC")]
    pub probes: Vec<String>,

    /// Write the names of all functions in call stacks beside the trace, so that they are shown after the
    /// next boot and on another machine, too; and record meanwhile what programs map, without which
    /// those of programs are not known
    #[arg(long, conflicts_with = "snapshot_on")]
    pub symbols: bool,

    /// Ask the servers that $DEBUGINFOD_URLS names for programs' symbols that this machine does not have
    #[arg(long, requires = "symbols")]
    pub debuginfod: bool,

    /// Record COMMAND only: all its threads, and the processes it starts
    #[arg(long)]
    pub only: bool,

    /// Record all CPUs and processes: the default
    #[arg(short, long, conflicts_with_all = ["only", "pids", "cpus", "cgroups"])]
    pub all_cpus: bool,

    /// End the recording after this time, as 10s, or when COMMAND ends; a COMMAND that still runs is waited for
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration)]
    pub duration: Option<Duration>,

    /// End the recording when this happens, or when COMMAND ends. WHAT is event:PATTERN,
    /// event:'PATTERN if EXPR', log:REGEX (a line of the kernel log), signal:USR1, signal:USR2, or
    /// failure: COMMAND fails, and if it does not, nothing is left of the recording. May be given
    /// several times: the first that happens counts. COMMAND goes on, and is waited for
    #[arg(long, value_name = "WHAT")]
    pub until: Vec<Condition>,

    /// After an event of --until record so many packets more, on all CPUs together
    #[arg(long, value_name = "PACKETS", requires = "until")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub after: Option<u64>,

    /// With --overwrite: each time this happens (WHAT as for --until) write what the buffers hold
    /// to DIR/1, DIR/2, ... Nothing else is written. Recording goes on until COMMAND ends
    #[arg(long, value_name = "WHAT")]
    pub snapshot_on: Vec<Condition>,

    /// End the recording after so many snapshots
    #[arg(long, value_name = "N", requires = "snapshot_on")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub snapshots: Option<u64>,

    /// Directory for the trace: new or empty [default: ./rtrace-YYYYMMDD-HHMMSS, UTC]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,

    /// Send the trace to the receiver there (`rtraced --listen`), and write nothing here. While it is not
    /// there the buffers fill; when the recording is over it is waited for 5 s
    #[arg(long, value_name = "PATH|HOST:PORT", value_parser = parse_address)]
    #[arg(conflicts_with_all = [
        "output", "direct", "rotate", "keep", "mode", "group", "symbols", "snapshot_on"
    ])]
    pub connect: Option<String>,

    #[command(flatten)]
    pub network: NetworkArgs,

    /// Flight recorder: when a buffer is full overwrite its oldest events. Nothing is read
    /// until the end, when the newest events are written
    #[arg(long)]
    pub overwrite: bool,

    /// Write around the page cache (O_DIRECT): a small part of the CPU time and no memory, but
    /// the writer waits for the disk at each packet. Not every file system can
    #[arg(long)]
    pub direct: bool,

    /// Cut the trace into chunks DIR/chunk-000001, DIR/chunk-000002, ..., each a trace of its own as
    /// soon as it is called so. The next one begins before the packets of one are more than SIZE
    /// (with K, M, G), or every TIME (with s, min, h, d), also if nothing was recorded
    #[arg(long, value_name = "SIZE|TIME")]
    pub rotate: Option<Every>,

    /// Keep the newest N finished chunks, and remove those before
    #[arg(long, value_name = "N", requires = "rotate")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub keep: Option<u64>,

    #[command(flatten)]
    pub access: AccessArgs,

    /// Fail with exit code 124 if events were lost (with --overwrite: were discarded), or bytes for AUX areas
    #[arg(long)]
    pub fail_on_loss: bool,

    /// Command to run while recording
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
