// SPDX-License-Identifier: GPL-2.0

//! The command line, as typed.

mod export;
mod hints;
mod latency;
mod list;
mod network;
mod probe;
mod profile;
mod record;
mod report;
mod session;
mod setup;
mod show;
mod top;

pub use export::{ExportArgs, ExportChoiceArgs, ExportFileArgs, ExportFormat, ExportStacksArgs};
pub use latency::LatencyArgs;
pub use list::ListArgs;
pub use network::NetworkArgs;
pub use probe::ProbeArgs;
pub use profile::ProfileArgs;
pub use record::RecordArgs;
pub use report::ReportArgs;
pub use session::{
    MarkArgs, RecoverArgs, SessionCommand, SnapshotArgs, StartArgs, StateArgs, StatusArgs,
};
pub use setup::{aux_size, filter, frequency, pattern, ChoiceArgs, FunctionArgs, SetupArgs};
pub use show::ShowArgs;
pub use top::TopArgs;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use setup::Places;
use std::ffi::OsString;
use std::path::PathBuf;
use system::access::{parse_group, parse_mode, Gid};

/// Records and reports what the Linux kernel does.
#[derive(Debug, Parser)]
#[command(name = "rtrace", version, arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  rtrace record -e 'sched:*' -- make        record while a command runs
  rtrace report rtrace-20261120-230000      what the trace holds
  rtrace trace -- ls                        the system calls of a command, as they come
  rtrace export text rtrace-20261120-230000 | less
  rtrace doctor                             what is missing to record

Exit codes: 0 done, 1 failed, 2 wrong usage; `rtrace record --help` has its own.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,

    /// Where debugfs is mounted
    #[arg(long, global = true, value_name = "PATH", default_value = control::DEBUGFS)]
    pub debugfs: PathBuf,

    /// Session to work with: one that is there (`rtrace session list`) [default: default; `record`
    /// makes one for itself]
    #[arg(long, global = true, value_name = "NAME", value_parser = session::name)]
    pub session: Option<String>,
}

impl Cli {
    /// Parses a command line.
    pub fn from_words<W>(words: impl IntoIterator<Item = W>) -> Result<Self, clap::Error>
    where
        W: Into<OsString> + Clone,
    {
        let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
        let matches = Self::command().try_get_matches_from(&words);
        let matches = matches.map_err(|mut error| {
            let texts = words.iter().map(|word| word.to_string_lossy().into_owned());
            hints::improve(&mut error, &texts.collect::<Vec<_>>());
            error
        })?;
        let mut cli = Self::from_arg_matches(&matches)?;
        let choice = match &mut cli.command {
            Command::Record(args) => Some(&mut args.setup.choice),
            Command::Start(args) => Some(&mut args.setup.choice),
            Command::Trace(args) => Some(&mut args.choice),
            _ => None,
        };
        if let (Some(choice), Some((_, matches))) = (choice, matches.subcommand()) {
            choice.places = Places::of(matches);
        }
        Ok(cli)
    }
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    Record(Box<RecordArgs>),
    Profile(Box<ProfileArgs>),
    Latency(LatencyArgs),
    Report(ReportArgs),
    Trace(Box<ShowArgs>),
    Top(TopArgs),
    Export(ExportArgs),
    List(ListArgs),
    Status(StatusArgs),
    Start(Box<StartArgs>),
    /// End the trace; what is in the buffers stays readable until the next start, or `free`
    Stop,
    Snapshot(SnapshotArgs),
    Recover(RecoverArgs),
    Mark(MarkArgs),
    State(StateArgs),
    Probe(ProbeArgs),
    /// Create, list, reset or destroy sessions
    #[command(subcommand)]
    Session(SessionCommand),
    /// Check what is missing to record, and how to mend it
    Doctor,
    #[command(hide = true)]
    Generate(GenerateArgs),
}

/// Who may read a trace.
#[derive(Debug, Args)]
pub struct AccessArgs {
    /// Permissions of DIR, in octal, whatever the umask; its files get them without the x bits.
    /// If DIR is there already, only its files [default: 0700; with --group 0750]
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    pub mode: Option<u32>,

    /// Group of DIR and its files: a name in /etc/group, or a number
    #[arg(long, value_name = "GROUP", value_parser = parse_group)]
    pub group: Option<Gid>,
}

/// Write man pages and shell completions
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// Directory for them
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}
