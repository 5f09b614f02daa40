// SPDX-License-Identifier: GPL-2.0

//! The commands that work with a session, as typed.

use super::{AccessArgs, SetupArgs};
use crate::complete;
use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;
use rtrace_input::name::refusal;
use std::path::PathBuf;

/// Show the session: its state, events, buffers and counters
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Start a new trace, for `rtraced` or `rtrace snapshot` to read
///
/// Options change the session's settings, or FILE does; what is not given stays as it is. What is not
/// the default then is shown (`rtrace status` has the details); `rtrace session reset` puts it back. A channel
/// that is not there is made, and stays as long as the session. With --config it is the session of the
/// file, if there is no --session. What is refused changes nothing.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  rtrace start --overwrite -b 1Mx16               a flight recorder of the events chosen before
  rtrace start -e sched_switch --filter 'prev_prio < 0' --context comm --channel calls -e syscalls
  rtrace --session web start --config web.toml")]
pub struct StartArgs {
    #[command(flatten)]
    pub setup: SetupArgs,

    /// When a buffer is full overwrite its oldest events (flight recorder)
    #[arg(long, conflicts_with = "discard")]
    pub overwrite: bool,

    /// When a buffer is full discard new events
    #[arg(long, conflicts_with = "config")]
    pub discard: bool,
}

/// Write what the buffers hold at this moment to a new trace
///
/// For a session that nobody else reads, such as a flight recorder started with `rtrace
/// start --overwrite`. Recording goes on. What was written has left the buffers; what comes meanwhile
/// stays there for the next snapshot. `rtraced --snapshots` writes one at each SIGUSR2.
#[derive(Debug, Args)]
pub struct SnapshotArgs {
    /// Directory for the trace: new or empty
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,

    #[command(flatten)]
    pub access: AccessArgs,
}

/// Write what a kernel that went down left in its memory to a new trace
///
/// In reserved memory: for a channel whose file `memory` names memory that `reserve_mem=` on the kernel's
/// command line reserves. When the kernel went down while the channel was recorded, the trace is still there
/// after the reboot, up to the last event, if the machine kept its memory. Once it is on the disk the memory
/// is free to be recorded in again.
///
/// With --vmcore, in a dump of the kernel's memory, such as kdump writes: an ELF file, or what makedumpfile
/// made of it. What the buffers of all sessions held is written as a trace for each session, DIR/SESSION; of
/// one only with --session. It takes drgn (package python3-drgn), but neither the kernel's debugging
/// information, nor the machine, nor rtrace's module.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Example, with `reserve_mem=64M:2M:rtrace` on the kernel's command line:
  modprobe rtrace memory=rtrace
  rtrace recover -o /var/log/crash

Of a dump:
  rtrace recover --vmcore /var/crash/202611230812/dump.202611230812 -o traces
  rtrace report traces/default")]
pub struct RecoverArgs {
    /// Directory for the trace, or with --vmcore for the traces: new or empty
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,

    /// What the buffers hold in this dump of a kernel's memory
    #[arg(long, value_name = "FILE")]
    pub vmcore: Option<PathBuf>,

    /// The channel whose memory it is
    #[arg(long, value_name = "NAME", default_value = control::FIRST_CHANNEL, conflicts_with = "vmcore")]
    pub channel: String,

    /// Leave the trace in memory, too
    #[arg(long, conflicts_with = "vmcore")]
    pub keep_memory: bool,

    #[command(flatten)]
    pub access: AccessArgs,
}

/// Record a text with its time, in every session that records
///
/// The trace has it as the event `rtrace_marker`, whatever events were chosen. With --session only
/// that session records it. Fails if none does. `echo TEXT > /sys/kernel/debug/rtrace/marker` does
/// the same.
#[derive(Debug, Args)]
pub struct MarkArgs {
    /// The text, at most 1023 bytes; several words are joined by blanks
    #[arg(value_name = "TEXT", required = true)]
    pub text: Vec<String>,
}

/// Record what there is at this moment: threads, open files, namespaces, devices
///
/// A trace tells what changes. Of what began before, it then has an event `lttng_statedump_...`: for each
/// thread (name, process, parent), its namespaces and open files, interrupts and their handlers, network
/// interfaces, block devices, CPUs, modules, mounts and cgroups. Reports, pages and viewers take names from
/// there. The session must be one that was started with --state, or record events of `statedump` otherwise.
///
/// `echo 1 > /sys/kernel/debug/rtrace/sessions/NAME/statedump` records the kernel's part of it alone:
/// threads, namespaces and open files.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Example:
  rtrace start --discard -e sched --state     with the state at the start
  rtrace state                                once more, an hour later")]
pub struct StateArgs {}

/// What to do with sessions.
#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    List(SessionListArgs),
    Create(SessionCreateArgs),
    Destroy(SessionDestroyArgs),
    /// Restore the session's default settings, and free the memory of its stopped trace
    ///
    /// The session is that of --session, or `default`.
    Reset,
    /// Free the memory of the session's stopped trace, and drop the events in it that were not read
    ///
    /// The session is that of --session, or `default`.
    Free,
}

/// List the sessions: states, channels, and numbers of enabled events
///
/// `rtrace --session NAME status` shows one session with its counters.
#[derive(Debug, Args)]
pub struct SessionListArgs {
    /// Print one JSON array
    #[arg(long)]
    pub json: bool,
}

/// Create a session with its own settings, events and traces
///
/// The session exists until `rtrace session destroy`, or until the module is unloaded. Other commands use it
/// with --session: `rtrace --session NAME start -e ...`, `rtraced --session NAME -o DIR`.
#[derive(Debug, Args)]
pub struct SessionCreateArgs {
    /// Name of the session: at most 63 letters, digits, _, - and .; the first is a letter, a digit or _
    #[arg(value_name = "NAME", value_parser = name)]
    pub name: String,
}

/// Destroy a session: stop its trace, drop the events that were not read, and free its memory
///
/// A reader of the trace (rtraced) continues to the end of the trace. The session `default` cannot be
/// destroyed.
#[derive(Debug, Args)]
pub struct SessionDestroyArgs {
    /// Name of the session
    #[arg(value_name = "NAME", value_parser = name)]
    #[arg(add = ArgValueCompleter::new(complete::sessions))]
    pub name: String,
}

/// Parses the name of a session.
pub fn name(text: &str) -> Result<String, &'static str> {
    refusal(text).map_or_else(|| Ok(text.to_owned()), Err)
}
