// SPDX-License-Identifier: GPL-2.0

//! Start of the command that `rtrace record` records, and the wait for the end of the recording.

use crate::exit::Code;
use crate::recording::Record;
use crate::run::condition::Condition;
use crate::run::watch::Watch;
use crate::run::workload::{self, Event, Run};
use crate::state;
use control::Session;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command};
use system::signals::Signals;
use terminal::{say, tell};

/// Result of the start.
pub enum Begun<'a> {
    /// The command could not be run.
    Not(Code),
    /// The command runs, or there is none.
    Running(Box<Run<'a>>),
}

/// Runs the command, if there is one.
pub fn begin<'a>(
    options: &'a Record,
    session: &Session,
    signals: Signals,
    watch: Watch,
) -> anyhow::Result<Begun<'a>> {
    if options.setup.state {
        state::record(session)?;
    }
    let ends = options.setup.tasks.ends()?;
    let until = match (&ends, options.conditions.duration) {
        (Some(_), _) => "the chosen processes end, or Ctrl-C",
        (None, Some(_)) => "the time has passed, or Ctrl-C",
        (None, None) => "Ctrl-C",
    };
    if options.command.is_empty() {
        tell(format_args!(
            "recording to {} until {until}",
            options.destination
        ));
    }
    let spawned = spawn(&options.command, |command| {
        options.setup.tasks.spawn(session, command)
    });
    let child = match spawned {
        Ok(child) => child,
        Err(code) => return Ok(Begun::Not(code)),
    };
    let run = Run::new(child, signals, &options.conditions, watch, ends)?;
    Ok(Begun::Running(Box::new(run)))
}

/// End of a recording.
pub struct End {
    /// The exit code of the command, if it has ended.
    pub code: Option<Code>,
    /// Whether the trace is kept.
    pub is_wanted: bool,
}

/// Waits for the end of the recording. If a condition ended it, reports the condition.
pub fn wait(options: &Record, run: &mut Run<'_>, over: impl AsFd) -> anyhow::Result<End> {
    let conditions = &options.conditions;
    let (happened, code) = match run.next(over)? {
        Event::Happened(happened) => (Some(happened), None),
        Event::Ended(code) => (run.failure(code), Some(code)),
    };
    if let Some(happened) = &happened {
        say(happened);
    }
    let waits_for_failure = conditions.until.iter().any(Condition::is_failure);
    Ok(End {
        code,
        is_wanted: happened.is_some() || !waits_for_failure,
    })
}

/// Looks for the program of a command, if there is one. The error is the exit code of a program that cannot be run; a
/// message says why.
pub fn find(command: &[OsString]) -> Result<Option<PathBuf>, Code> {
    let found = command.first().map(|program| {
        let found = workload::find(program);
        found.map_err(|error| cannot_run(program, &error))
    });
    found.transpose()
}

/// Runs a command by `run`, if there is one. The error is that of [`find`].
pub fn spawn(
    command: &[OsString],
    run: impl FnOnce(Command) -> io::Result<Child>,
) -> Result<Option<Child>, Code> {
    let [program, arguments @ ..] = command else {
        return Ok(None);
    };
    let mut command = Command::new(program);
    command.args(arguments);
    let child = run(command).map_err(|error| cannot_run(program, &error))?;
    Ok(Some(child))
}

/// Reports why a command is not run. Returns the exit code for that.
fn cannot_run(program: &OsStr, error: &io::Error) -> Code {
    let name = match program.is_empty() {
        true => "''".into(),
        false => program.to_string_lossy(),
    };
    say(format_args!("cannot run {name}: {error}"));
    workload::spawn_code(error)
}
