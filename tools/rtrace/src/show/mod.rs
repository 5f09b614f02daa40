// SPDX-License-Identifier: GPL-2.0

//! `rtrace trace`: a trace as lines, one for each system call and each other event.

mod arguments;
mod calls;
mod feedback;
mod lines;
mod output;
mod page;

use crate::analysis::summary::cut;
use crate::analysis::text::totals;
use crate::launch::cannot_run;
use crate::live;
use crate::loss::Lost;
use crate::options::{Input, Place, Show};
use crate::progress;
use crate::record::FAILED;
use crate::setup::Setup;
use crate::terminal::say;
use crate::workload::{self, Code};
use anyhow::Error;
use indicatif::ProgressBar;
use lines::{Hidden, Lines};
use network::Peer;
use output::Output;
use std::ffi::OsString;
use std::io::{stdout, IsTerminal};
use std::path::Path;
use std::process::{self, Command, ExitCode};
use trace::ctf::{Item, Merge, Trace};
use trace::signals::Signals;
use trace::viewer::View;

/// Prints a trace, and gives the exit code.
pub fn show(place: &Place, options: &Show) -> ExitCode {
    ExitCode::from(try_show(place, options).unwrap_or_else(|error| {
        say(format_args!("{error:#}"));
        FAILED
    }))
}

fn try_show(place: &Place, options: &Show) -> anyhow::Result<Code> {
    match &options.input {
        Input::Recorded(dir) => recorded(dir, options).map(|()| 0),
        Input::Received {
            address,
            security,
            name,
        } => {
            let security = security.client().map_err(Error::msg)?;
            let peer = Peer::new(address.clone(), security);
            received(&peer, name.clone(), options).map(|()| 0)
        }
        Input::Live { setup, command } => live(place, setup, command.as_ref(), options),
    }
}

/// Prints the trace in a directory.
fn recorded(dir: &Path, options: &Show) -> anyhow::Result<()> {
    let trace = Trace::open(dir)?;
    let merge = Merge::new(&trace)?;
    let output = Output::open(options.output.as_deref())?;
    let mut lines = Lines::new(output, options.summary).with(Lost::of(&trace));
    let bar = match options.output {
        Some(_) => progress::reading(&trace)?,
        // Lines show how far it is.
        None => ProgressBar::hidden(),
    };
    let mut warnings = Vec::new();
    let printed = print(&trace, merge, &mut lines, &mut warnings, |bytes| {
        bar.inc(bytes)
    });
    bar.finish_and_clear();
    match printed {
        Err(error) if live::is_closed(&error) => return Ok(()),
        printed => printed?,
    }
    warnings.iter().for_each(say);
    say(totals(&lines.lost().total()));
    Ok(())
}

/// Prints what comes in at a receiver, until its end or a signal.
fn received(peer: &Peer, name: Option<String>, options: &Show) -> anyhow::Result<()> {
    let signals = Signals::catch()?;
    let output = Output::open(options.output.as_deref())?;
    let mut lines = Lines::new(output, options.summary);
    match network::watch(peer, name, &signals, &mut lines) {
        Err(error) if live::is_closed(&error) => return Ok(()),
        watched => watched?,
    }
    say(totals(&lines.lost().total()));
    Ok(())
}

fn print(
    trace: &Trace,
    mut merge: Merge<'_>,
    lines: &mut Lines,
    warnings: &mut Vec<String>,
    progress: impl Fn(u64),
) -> trace::Result<()> {
    let paths: Vec<_> = trace.streams_by_name().map(|files| &files[0]).collect();
    lines.describe(&trace.metadata)?;
    while let Some((stream, item)) = merge.next_item()? {
        match item {
            Item::Packet(packet) => progress(packet.at.size()),
            Item::End { partial } => warnings.extend(cut(paths[stream], partial)),
            Item::Whole { .. } | Item::Event(_) => {}
        }
        lines.item(stream, &item)?;
    }
    lines.end()
}

/// Prints what happens, and gives the exit code of the command, if there is one.
fn live(
    place: &Place,
    setup: &Setup,
    command: Option<&(OsString, Vec<OsString>)>,
    options: &Show,
) -> anyhow::Result<Code> {
    // Before anything is made or started that would be of no use.
    if let Some((program, _)) = command {
        if let Err(error) = workload::find(program) {
            return Ok(cannot_run(program, &error));
        }
    }
    let output = Output::open(options.output.as_deref())?;
    let lines = Lines::new(output, options.summary).hide(Hidden {
        process: Some(process::id().into()),
        // Until then it is rtrace that gets the command going.
        before: (command.is_some() && setup.tasks.pids.is_none()).then_some("execve"),
    });
    // Where others are chosen it is not among them.
    let is_everybody = setup.tasks.pids.is_none() && command.is_none();
    let to_terminal = options.output.is_none() && stdout().is_terminal();
    let not = || match is_everybody {
        true => feedback::threads_of_ours(to_terminal),
        false => Vec::new(),
    };
    live::look(place, setup, &not, lines, |recording| {
        let child = command.map(|(program, arguments)| {
            let mut command = Command::new(program);
            command.args(arguments);
            let child = setup.tasks.spawn(recording.session, command);
            child.map_err(|error| cannot_run(program, &error))
        });
        match child.transpose() {
            Ok(child) => recording.wait(child),
            Err(code) => Ok(code),
        }
    })
}
