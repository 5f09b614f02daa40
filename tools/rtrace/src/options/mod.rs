// SPDX-License-Identifier: GPL-2.0

//! Values that the program uses, converted from the arguments as typed.

mod count;
mod export;
mod latency;
mod profile;
mod query;
mod record;
mod setup;
mod show;
#[cfg(test)]
mod tests;
mod top;

pub use count::Count;
pub use latency::{Latency, TIMERS};
pub use profile::Profile;
pub use record::{Conditions, Record};
pub use show::{Input, Show};
pub use top::Top;

use crate::args::{
    AccessArgs, Cli, Command, ListArgs, NetworkArgs, ReportArgs, SessionCommand, StartArgs,
    StateArgs,
};
use crate::newest;
use crate::report::Output;
use crate::session::config::Config;
use crate::session::maps::Maps;
use ::export::{Export, Target};
use ::query::Query;
use analysis::choice::Choice;
use analysis::syscalls::By;
use analysis::{Question, Sort};
use clap::error::ErrorKind;
use clap::CommandFactory;
use control::{Mode, Session, Tracer, DEFAULT_SESSION};
use network::{Credentials, Security};
use std::path::PathBuf;
use store::OutputOptions;
use system::access::Access;

/// Location of the tracer.
pub struct Place {
    /// Directory that contains the tracer's directory.
    pub debugfs: PathBuf,
    /// The session's name, if one was given.
    pub session: Option<String>,
}

impl Place {
    /// The tracer.
    pub fn tracer(&self) -> system::Result<Tracer> {
        Tracer::find(&self.debugfs)
    }

    /// The session that was given, or `default`, which always exists.
    pub fn session(&self) -> system::Result<Session> {
        let name = self.session.as_deref().unwrap_or(DEFAULT_SESSION);
        self.tracer()?.session(name)
    }
}

/// Command to execute.
pub enum Action {
    Record(Box<Record>),
    Profile(Box<Profile>),
    Latency(Box<Latency>),
    /// Prints the longest wait of a trace.
    LatencyOf {
        /// The kind of latency.
        measured: control::Latency,
        dir: PathBuf,
        /// Rows in the table of what a CPU did. Without it, a JSON object is printed.
        rows: Option<usize>,
    },
    Report {
        dir: PathBuf,
        questions: Vec<Question>,
        /// The part of the trace.
        choice: Choice,
        output: Output,
    },
    /// Prints the calls of functions of a trace.
    Graph {
        dir: PathBuf,
        /// The part of the trace.
        choice: Choice,
        /// The rows of a table of functions, which replaces the tree.
        summary: Option<usize>,
    },
    Show(Box<Show>),
    Top(Box<Top>),
    Count(Box<Count>),
    /// Prints the recipes of `rtrace count`.
    ListRecipes,
    Export(Export),
    Query(Query),
    Diff {
        a: PathBuf,
        b: PathBuf,
        output: Output,
    },
    ListQueries {
        dirs: Vec<PathBuf>,
    },
    List {
        patterns: Vec<String>,
        verbose: bool,
        json: bool,
    },
    ListAwaited {
        patterns: Vec<String>,
        json: bool,
    },
    ListContexts {
        json: bool,
    },
    Status {
        json: bool,
    },
    Start {
        config: Box<Config>,
        /// Create a missing session, and leave alone one that records.
        ensure: bool,
    },
    Stop,
    Free,
    Reset,
    Snapshot {
        dir: PathBuf,
        output_options: OutputOptions,
    },
    Recover(Recover),
    Mark {
        text: String,
    },
    State,
    /// Prints functions of the kernel.
    ListFunctions {
        pattern: String,
        json: bool,
    },
    /// Defines dynamic events.
    AddProbes {
        specs: Vec<String>,
    },
    /// Lists dynamic events.
    ListProbes {
        json: bool,
    },
    /// Deletes dynamic events.
    DeleteProbes {
        names: Vec<String>,
    },
    Create {
        name: String,
        maps: Maps,
    },
    Destroy {
        name: String,
    },
    Sessions {
        json: bool,
    },
    Doctor {
        /// Directory with the machine's files.
        root: PathBuf,
        json: bool,
    },
    Generate {
        dir: PathBuf,
    },
}

/// Source of a trace whose kernel has crashed.
#[derive(Debug)]
pub enum RecoverFrom {
    /// A reserved memory region of a channel.
    Reserved {
        /// The channel.
        channel: String,
        /// Whether the trace stays in the memory.
        keep: bool,
    },
    /// This dump of the kernel's memory.
    Vmcore(PathBuf),
}

/// Options of `rtrace recover`.
#[derive(Debug)]
pub struct Recover {
    /// The trace's directory, or that of the traces.
    pub dir: PathBuf,
    /// Access rights of the trace's files.
    pub access: Access,
    /// Where the buffers are.
    pub source: RecoverFrom,
}

/// Converts the command line. No other code converts arguments.
pub fn from_cli(cli: Cli) -> Result<(Place, Action), clap::Error> {
    let action = match cli.command {
        Command::Record(args) => {
            if cli.session.is_some() {
                record::without_setup(&args)?;
            }
            Action::Record(Box::new(record::record(*args)?))
        }
        Command::Report(args) if args.graph => Action::Graph {
            choice: Choice {
                from: args.from,
                to: args.to,
                pids: args.pids,
                comms: args.comms,
            },
            dir: trace(args.dir)?,
            summary: args.summary.then_some(rows(args.rows)),
        },
        Command::Report(args) => report(args)?,
        Command::Trace(_)
        | Command::Top(_)
        | Command::Count(_)
        | Command::Profile(_)
        | Command::Latency(_)
            if cli.session.is_some() =>
        {
            return Err(wrong(
                "--session cannot be used with this command, which creates its own session",
            ));
        }
        Command::Profile(args) => Action::Profile(Box::new(profile::profile(*args))),
        Command::Latency(args) => latency::latency(args)?,
        Command::Trace(args) => Action::Show(Box::new(show::show(*args)?)),
        Command::Top(args) => Action::Top(Box::new(top::top(args)?)),
        Command::Count(args) if args.recipes => Action::ListRecipes,
        Command::Count(args) => Action::Count(Box::new(count::count(*args)?)),
        Command::Export(args) => Action::Export(export::export(args)?),
        Command::Query(args) => query::query(args)?,
        Command::Diff(args) => Action::Diff {
            a: args.a,
            b: args.b,
            output: match args.html {
                Some(file) => Output::Page(Target::named(file, args.force)),
                None if args.json => Output::Json,
                None => Output::Text {
                    rows: rows(args.rows),
                },
            },
        },
        Command::List(args) if args.contexts => Action::ListContexts { json: args.json },
        Command::List(ListArgs {
            functions: Some(pattern),
            json,
            ..
        }) => Action::ListFunctions { pattern, json },
        Command::List(args) if args.awaited => Action::ListAwaited {
            patterns: args.patterns,
            json: args.json,
        },
        Command::List(args) => Action::List {
            patterns: args.patterns,
            verbose: args.verbose,
            json: args.json,
        },
        Command::Status(args) => Action::Status { json: args.json },
        Command::Start(args) => Action::Start {
            config: Box::new(start(&args)?),
            ensure: args.ensure,
        },
        Command::Stop => Action::Stop,
        Command::Snapshot(args) => Action::Snapshot {
            output_options: OutputOptions {
                access: access(&args.access),
                ..OutputOptions::default()
            },
            dir: args.output,
        },
        Command::Recover(args) => Action::Recover(Recover {
            access: access(&args.access),
            dir: args.output,
            source: match args.vmcore {
                Some(file) => RecoverFrom::Vmcore(file),
                None => RecoverFrom::Reserved {
                    channel: args.channel,
                    keep: args.keep_memory,
                },
            },
        }),
        Command::Mark(args) => Action::Mark {
            text: args.text.join(" "),
        },
        Command::State(StateArgs {}) => Action::State,
        Command::Probe(args) if !args.delete.is_empty() => {
            Action::DeleteProbes { names: args.delete }
        }
        Command::Probe(args) if args.specs.is_empty() => Action::ListProbes { json: args.json },
        Command::Probe(args) => Action::AddProbes { specs: args.specs },
        Command::Session(command) => match command {
            SessionCommand::List(args) => Action::Sessions { json: args.json },
            SessionCommand::Create(args) => {
                let maps = setup::maps(&args.maps)?;
                without_probes(&maps)?;
                Action::Create {
                    name: args.name,
                    maps,
                }
            }
            SessionCommand::Destroy(args) => Action::Destroy { name: args.name },
            SessionCommand::Reset => Action::Reset,
            SessionCommand::Free => Action::Free,
        },
        Command::Doctor(args) => Action::Doctor {
            root: args.root,
            json: args.json,
        },
        Command::Generate(args) => Action::Generate { dir: args.dir },
    };
    let place = Place {
        debugfs: cli.debugfs.unwrap_or_else(control::usual_place),
        session: cli.session,
    };
    Ok((place, action))
}

fn report(args: ReportArgs) -> Result<Action, clap::Error> {
    // The path alone ends at `to`, and needs what happened before.
    let is_path = args.critical_path.is_some();
    let choice = Choice {
        from: args.from,
        to: args.to.filter(|_| !is_path),
        pids: args.pids,
        comms: args.comms,
    };
    let output = match args.html {
        Some(file) => Output::Page(Target::named(file, args.force)),
        None if args.serve => Output::Served,
        None if args.json => Output::Json,
        None => Output::Text {
            rows: rows(args.rows),
        },
    };
    let questions = [
        args.syscalls.then_some(Question::Syscalls {
            by: match (args.by_process, args.by_name) {
                (true, _) => By::Process,
                (_, true) => By::Name,
                _ => By::Call,
            },
        }),
        args.latency.then_some(Question::Latency),
        args.threads.then_some(Question::Threads {
            sort: match args.sort.as_str() {
                "runnable" => Sort::Runnable,
                "blocked" => Sort::Blocked,
                _ => Sort::Running,
            },
        }),
        args.cpu.then_some(Question::Cpu),
        args.irq.then_some(Question::Irq),
        args.io.then_some(Question::Io),
        args.locks.then_some(Question::Locks),
        args.profile.then_some(Question::Profile),
        args.maps.then_some(Question::Maps),
        args.aux.then_some(Question::Aux),
        args.critical_path
            .map(|tid| Question::CriticalPath { tid, to: args.to }),
    ];
    Ok(Action::Report {
        dir: trace(args.dir)?,
        questions: questions.into_iter().flatten().collect(),
        choice,
        output,
    })
}

fn start(args: &StartArgs) -> Result<Config, clap::Error> {
    let mode = match (args.overwrite, args.discard) {
        (true, _) => Some(Mode::Overwrite),
        (_, true) => Some(Mode::Discard),
        _ => None,
    };
    let size = args.setup.choice.buffer;
    let mut config = setup::config(&args.setup)?;
    config.setup.fill(mode, size);
    setup::add_state(&mut config.setup)?;
    if let Some(only) = &config.setup.tasks.only_command {
        let what = "`only` needs the COMMAND of `rtrace record`: `rtrace start` runs no command";
        return Err(wrong(only.wrong(what)));
    }
    without_probes(&config.setup.maps)?;
    Ok(config)
}

/// Refuses maps with events of their own, for a session that exists after the command.
fn without_probes(maps: &Maps) -> Result<(), clap::Error> {
    match maps.probes.is_empty() {
        true => Ok(()),
        false => Err(wrong(
            "a recipe with lines `-k` works only with `rtrace record` and `rtrace count`: its events are deleted when the command ends",
        )),
    }
}

/// Maximum number of rows in a table; 0 typed: all.
fn rows(typed: usize) -> usize {
    match typed {
        0 => usize::MAX,
        rows => rows,
    }
}

fn access(args: &AccessArgs) -> Access {
    Access::new(args.mode, args.group)
}

fn security(args: NetworkArgs) -> Security<Credentials> {
    let NetworkArgs {
        ca,
        cert,
        key,
        plain,
    } = args;
    Security::new(ca, cert, key, plain)
}

/// The trace that a command reads: the newest, if the command line names none.
fn trace(dir: Option<PathBuf>) -> Result<PathBuf, clap::Error> {
    let missing = |what| Cli::command().error(ErrorKind::MissingRequiredArgument, what);
    newest::or_newest(dir).map_err(missing)
}

/// An error for a command line that makes no sense.
fn wrong(what: impl std::fmt::Display) -> clap::Error {
    Cli::command().error(ErrorKind::ArgumentConflict, what)
}
