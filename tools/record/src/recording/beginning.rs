// SPDX-License-Identifier: GPL-2.0

//! Start of the recorded command, and the wait for the end of the recording.

use super::Record;
use crate::exit::Code;
use crate::run::condition::{Condition, Happened};
use crate::run::launch::spawn;
use crate::run::watch::Watch;
use crate::run::workload::{Run, RunEvent};
use crate::state;
use control::Session;
use std::os::fd::AsFd;
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
    let until = match &ends {
        Some(_) => "the chosen processes end, or Ctrl-C",
        None => options.conditions.end(),
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
    let (happened, code) = next(run, over)?;
    happened.iter().for_each(say);
    let waits_for_failure = options.conditions.until.iter().any(Condition::is_failure);
    Ok(End {
        code,
        is_wanted: happened.is_some() || !waits_for_failure,
    })
}

/// Waits for the next event of a run. Returns the condition that occurred, and the exit code if the run has ended.
pub fn next(
    run: &mut Run<'_>,
    over: impl AsFd,
) -> anyhow::Result<(Option<Happened>, Option<Code>)> {
    Ok(match run.next(over)? {
        RunEvent::Happened(happened) => (Some(happened), None),
        RunEvent::Ended(code) => (run.failure(code), Some(code)),
    })
}
