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
/// The options, or FILE, change settings of the session; other settings stay. Settings that differ from the
/// defaults are then shown (`rtrace status` has the details), and `rtrace session reset` restores the defaults. A
/// channel that does not exist is created, and lives as long as the session. With --config and without --session,
/// the session is that of the file. A refused option changes nothing, and makes no session.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  rtrace start --overwrite -b 1Mx16               a flight recorder of the events chosen before
  rtrace start -e sched_switch --filter 'prev_prio < 0' --context comm --channel calls -e syscalls
  rtrace --session web start --config web.toml
  rtrace --session web start --ensure --config web.toml     as a service starts it, also for the second time")]
pub struct StartArgs {
    #[command(flatten)]
    pub setup: SetupArgs,

    /// Keep the newest events (flight recorder)
    ///
    /// A full buffer overwrites its oldest events. Otherwise it discards new events, as in `rtrace record`.
    #[arg(long)]
    pub overwrite: bool,

    /// Make sure that the session records, for services: create the session if it does not exist, and change nothing
    /// if it records already
    #[arg(long)]
    pub ensure: bool,
}

/// Write the contents of the buffers to a new trace
///
/// This is for a session without a reader, such as a flight recorder started with `rtrace start --overwrite`. The
/// recording continues. Events that were written have left the buffers; later events stay there for the next
/// snapshot. `rtraced --snapshot-on signal:USR2` writes a snapshot at each SIGUSR2.
#[derive(Debug, Args)]
pub struct SnapshotArgs {
    /// Directory for the trace: new or empty
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,

    #[command(flatten)]
    pub access: AccessArgs,
}

/// Write the buffers of a crashed kernel to a new trace
///
/// Without --vmcore, the buffers are in reserved memory: the file `memory` of the channel names memory that
/// `reserve_mem=` on the kernel's command line reserves. If the machine kept its memory over the reboot, the trace
/// is complete up to the last event. When the trace is on the disk, the memory is free for the next recording, unless
/// parts of it are damaged: then a message says how to free it.
///
/// With --vmcore, the buffers are in a dump of the kernel's memory, such as kdump writes: an ELF file, or one that
/// makedumpfile made of it. Each session gets a trace DIR/SESSION; with --session only that one. This needs drgn
/// (package python3-drgn), but neither debugging information, nor the machine, nor rtrace's module.
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

    /// Read the buffers from this dump of a kernel's memory
    #[arg(long, value_name = "FILE")]
    pub vmcore: Option<PathBuf>,

    /// Channel of the reserved memory
    #[arg(long, value_name = "NAME", default_value = control::FIRST_CHANNEL, conflicts_with = "vmcore")]
    pub channel: String,

    /// Leave the trace in memory, too
    #[arg(long, conflicts_with = "vmcore")]
    pub keep_memory: bool,

    #[command(flatten)]
    pub access: AccessArgs,
}

/// Record a text with its time in every active session
///
/// The trace has the text as the event `rtrace_marker`, whatever events were chosen. With --session only that
/// session records it. The command fails if no session records it. `echo TEXT > /sys/kernel/debug/rtrace/marker`
/// does the same.
#[derive(Debug, Args)]
pub struct MarkArgs {
    /// The text, at most 1023 bytes; several words are joined by blanks
    #[arg(value_name = "TEXT", required = true)]
    pub text: Vec<String>,
}

/// Record the current state: threads, open files, namespaces, devices
///
/// A trace has changes only. For what began before, this adds events `lttng_statedump_...`: each thread (name,
/// process, parent), its namespaces and open files, interrupts and their handlers, network interfaces, block
/// devices, CPUs, modules, mounts and cgroups. Reports, pages and viewers take names from there. The session must
/// be started with --state, or record events of `statedump`.
///
/// `echo 1 > /sys/kernel/debug/rtrace/sessions/NAME/statedump` records only the kernel's part: threads, namespaces
/// and open files.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Example:
  rtrace start -e sched --state     with the state at the start
  rtrace state                      once more, an hour later")]
pub struct StateArgs {}

/// Subcommands about sessions.
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
    /// Print one JSON object
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

    /// Count in a map: a recipe of `rtrace count`, a file of maps, or 'NAME EVENT by KEY ...'
    ///
    /// The map counts until the session is destroyed. `rtraced --metrics` serves its numbers.
    #[arg(long = "map", value_name = "MAP")]
    #[arg(add = ArgValueCompleter::new(complete::recipes))]
    pub maps: Vec<String>,
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
