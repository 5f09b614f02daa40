// SPDX-License-Identifier: GPL-2.0

//! The command line, as typed: a file for each command, and the options that several commands have.

mod count;
mod diff;
mod export;
mod hints;
mod latency;
mod list;
mod mcp;
mod network;
mod part;
mod places;
mod probe;
mod profile;
mod query;
mod record;
mod report;
mod session;
pub mod settings;
mod setup;
mod show;
mod size;
mod top;
mod why;

pub use count::CountArgs;
pub use diff::DiffArgs;
pub use export::{ExportArgs, ExportFileArgs, ExportFormat};
pub use latency::LatencyArgs;
pub use list::ListArgs;
pub use mcp::McpArgs;
pub use network::NetworkArgs;
pub use part::{PartArgs, RangeArgs};
pub use places::Filtered;
pub use probe::ProbeArgs;
pub use profile::{Pace, ProfileArgs};
pub use query::{QueryArgs, QueryFormat};
pub use record::RecordArgs;
pub use report::{ReportArgs, ReportSort};
pub use session::{
    MarkArgs, RecoverArgs, SessionCommand, SessionCreateArgs, SnapshotArgs, StartArgs, StateArgs,
    StatusArgs,
};
pub use setup::{ChoiceArgs, FunctionArgs, SetupArgs};
pub use show::{ShowArgs, SHOWN_BYTES};
pub use size::SizeArgs;
pub use top::{Column, TopArgs};
pub use why::WhyArgs;

use crate::schema::Schema;
use crate::{complete, newest};
use ::record::probe::in_program;
use clap::error::ErrorKind;
use clap::{Args, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::engine::ArgValueCompleter;
use places::Places;
use rtrace_input::glob;
use std::convert::Infallible;
use std::ffi::OsString;
use std::num::ParseIntError;
use std::path::PathBuf;
use store::OutputOptions;
use system::access::{parse_group, parse_mode, Access, Gid};
use terminal::date;

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

Exit codes, the same in all commands:
  0    done; of a command that runs COMMAND: COMMAND's own
  1    the trace is damaged, and what can be read was shown; `doctor`: something is missing
  2    wrong usage
  124  events were lost, and --fail-on-loss was given
  125  rtrace failed
  126  COMMAND cannot be run; 127: it was not found
  128 + N  signal N ended COMMAND")]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,

    /// Show and read times in UTC, not in local time
    #[arg(long, global = true, hide_short_help = true)]
    pub utc: bool,

    /// Suppress progress bars and messages of success, but no warning and no loss
    #[arg(short, long, global = true, hide_short_help = true)]
    pub quiet: bool,

    /// Whether output has colours [default: on a terminal]
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_name = "WHEN",
        default_value = "auto"
    )]
    #[arg(hide_default_value = true)]
    pub color: ColorChoice,

    /// Directory that contains rtrace's directory of files [default: /sys/kernel if the file system `rtrace` is mounted
    /// there, else debugfs]
    #[arg(long, global = true, hide_short_help = true, value_name = "PATH")]
    pub debugfs: Option<PathBuf>,

    /// Session to work with, which must exist (`rtrace session list`) [default: default; `record` makes one for itself]
    #[arg(long, global = true, hide_short_help = true, value_name = "NAME", value_parser = session::name)]
    #[arg(add = ArgValueCompleter::new(complete::sessions))]
    pub session: Option<String>,
}

impl Cli {
    /// Applies the options that concern all output of the process.
    pub fn apply(&self) {
        if self.utc {
            date::use_utc();
        }
        if self.quiet {
            terminal::be_quiet();
        }
        match self.color {
            ColorChoice::Auto => {}
            ColorChoice::Always => terminal::colour(true),
            ColorChoice::Never => terminal::colour(false),
        }
    }

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
    Why(WhyArgs),
    Trace(Box<ShowArgs>),
    Top(TopArgs),
    Count(Box<CountArgs>),
    Export(ExportArgs),
    Query(QueryArgs),
    Diff(DiffArgs),
    List(ListArgs),
    Schema(SchemaArgs),
    Mcp(McpArgs),
    Status(StatusArgs),
    Start(Box<StartArgs>),
    /// Stop the trace
    ///
    /// The events in the buffers stay readable until the next start, or until `rtrace session free`.
    Stop,
    Snapshot(SnapshotArgs),
    Recover(RecoverArgs),
    Mark(MarkArgs),
    State(StateArgs),
    Probe(ProbeArgs),
    /// Create, list, reset or destroy sessions
    #[command(subcommand)]
    Session(SessionCommand),
    Doctor(DoctorArgs),
    #[command(hide = true)]
    Generate(GenerateArgs),
}

impl Command {
    /// Whether the command records in a session that it makes and destroys.
    pub fn makes_its_session(&self) -> bool {
        matches!(
            self,
            Self::Trace(_) | Self::Top(_) | Self::Count(_) | Self::Profile(_) | Self::Latency(_)
        )
    }
}

/// Options for the readers of a trace.
#[derive(Debug, Args)]
pub struct AccessArgs {
    /// Permissions of DIR, in octal, whatever the umask; its files get them without the x bits. If DIR exists already,
    /// only its files get them [default: 0700; with --group 0750]
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    pub mode: Option<u32>,

    /// Group of DIR and its files: a name in /etc/group, or a number
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "GROUP", value_parser = parse_group)]
    pub group: Option<Gid>,
}

impl AccessArgs {
    /// Access rights of the trace's files.
    pub fn access(&self) -> Access {
        Access::new(self.mode, self.group)
    }

    /// Options for a trace with these access rights.
    pub fn output(&self) -> OutputOptions {
        OutputOptions {
            access: self.access(),
            ..OutputOptions::default()
        }
    }
}

/// An error for a command line that makes no sense.
pub fn wrong(what: impl std::fmt::Display) -> clap::Error {
    Cli::command().error(ErrorKind::ArgumentConflict, what)
}

/// The trace that a command reads: the newest, if the command line names none.
pub fn trace(dir: Option<PathBuf>) -> Result<PathBuf, clap::Error> {
    let missing = |what| Cli::command().error(ErrorKind::MissingRequiredArgument, what);
    newest::or_newest(dir).map_err(missing)
}

/// Number of bytes of the longest name that the kernel keeps of a thread.
const LONGEST_COMM: usize = 15;

/// Parses a pattern of names of threads. A pattern that no name can match is a mistake.
pub fn comm(pattern: &str) -> Result<String, String> {
    match glob::shortest(pattern) {
        ..=LONGEST_COMM => Ok(pattern.to_owned()),
        _ => Err(format!(
            "the name of a thread has at most {LONGEST_COMM} bytes: longer ones are cut"
        )),
    }
}

/// Parses the maximum number of rows in a table; 0 stands for all.
fn rows(text: &str) -> Result<usize, ParseIntError> {
    match text.parse()? {
        0 => Ok(usize::MAX),
        rows => Ok(rows),
    }
}

/// Parses a probe of -u, which -k takes, too.
fn usdt(text: &str) -> Result<String, Infallible> {
    Ok(in_program(text))
}

/// Check that this machine can record, and say how to fix what is missing
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    /// Check the machine whose files are below DIR: a mounted image
    #[arg(long, value_name = "DIR", default_value = "/", hide_short_help = true)]
    pub root: PathBuf,
}

/// Print the JSON Schema of an answer of --json
///
/// Each answer names its schema and the version in its field `schema`, as "report/1". Within a version, fields are only
/// added. A field that disappears or gets another meaning makes a new version.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// The answer; without ANSWER, list the schemas
    #[arg(value_name = "ANSWER", value_enum, hide_possible_values = true)]
    pub answer: Option<Schema>,
}

/// Write man pages and shell completions
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// Directory for them
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}
