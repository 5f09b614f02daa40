// SPDX-License-Identifier: GPL-2.0

//! `rtrace trace`: prints a trace as lines, one for each system call and each other event, or as a tree of calls of
//! functions. `rtrace report --graph` prints that tree, too.

mod argument;
mod arguments;
mod call_filter;
mod calls;
mod expression;
mod feedback;
mod frames;
mod graph;
mod lines;
pub mod options;
mod output;
mod page;
pub mod paths;
mod pointed;
mod requests;
mod structure;
mod told;
mod tree;
mod watched;
mod who;

use crate::args::{self, ReportArgs, ShowArgs};
use analysis::frame::totals;
use analysis::loss::Account;
use analysis::pass::each;
use anyhow::{bail, Error};
use call_filter::{CallFilter, Known};
use consumer::viewer::View;
use frames::Frames;
use graph::Graph;
use indicatif::ProgressBar;
use lines::{Hidden, LineChoice, Lines};
use network::Peer;
use options::{Input, Show};
use output::Output;
use record::exit::{Code, DONE};
use record::place::Place;
use record::run::{launch, live};
use record::session::setup::Setup;
use std::io::{stdout, IsTerminal};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process;
use store::Trace;
use system::signals::Signals;
use terminal::{progress, say};

/// A view that prints.
trait Printer: View {
    /// The losses of the trace and other faults.
    fn account(&self) -> &Account;
}

/// `rtrace report --graph`: prints the calls of functions of the chosen part of a trace, or a table of the functions.
pub fn graph(args: &ReportArgs) -> anyhow::Result<()> {
    let dir = &args::trace(args.dir.clone())?;
    let trace = Trace::open(dir)?;
    if !graph::is_in(&trace.metadata) {
        bail!(
            "{}: the trace has no function calls; `rtrace record -G PATTERN` records them",
            dir.display()
        );
    }
    let rows = args.summary.then_some(args.rows);
    let graph = Graph::new(Output::open(None, false)?).summary(rows);
    let graph = graph
        .of(dir, Account::of(&trace))
        .only(args.part.clone().choice().part);
    recorded(&trace, graph, None)
}

/// Prints a trace, and returns the exit code.
pub fn show(place: &Place, args: ShowArgs) -> anyhow::Result<Code> {
    let mut options = options::options(args)?;
    if let Input::Live { setup } = &mut options.input {
        filter(place, setup, &options.filters)?;
        if options.wants_requests {
            request(place, setup)?;
        }
    }
    let options = &options;
    match &options.input {
        Input::Recorded(dir) => {
            let trace = Trace::open(dir)?;
            let output = options.open()?;
            let frames = options
                .args
                .stack_trace
                .then(|| Frames::recorded(dir, &trace));
            let lines = lines(output, options).with(Account::of(&trace));
            let lines = lines.frames(frames.transpose()?);
            recorded(&trace, lines, options.file()).map(|()| DONE)
        }
        Input::Received {
            address,
            security,
            name,
        } => {
            let security = security.client().map_err(Error::msg)?;
            let peer = Peer::new(address.clone(), security);
            received(&peer, name.clone(), options).map(|()| DONE)
        }
        Input::Live { setup } => live(place, setup, options),
    }
}

/// Sets filters of system calls in the kernel, as far as the kernel can check them.
fn filter(place: &Place, setup: &mut Setup, filters: &[CallFilter]) -> anyhow::Result<()> {
    if filters.is_empty() {
        return Ok(());
    }
    let tracer = place.tracer()?;
    let known = Known {
        events: tracer.available_events()?,
        contexts: tracer.available_contexts()?,
        fields: |event: &str| {
            let format = tracer.format(event).ok()?;
            let fields = format
                .lines()
                .filter_map(|line| line.trim().strip_prefix("field:"));
            let names = fields.filter_map(|field| {
                let declaration = field.split(';').next()?;
                let name = declaration.split_whitespace().last()?;
                name.split('[').next().map(str::to_owned)
            });
            Some(names.collect())
        },
    };
    let divided = known.divide(filters).map_err(Error::msg)?;
    for channel in &mut setup.channels {
        channel.filters.splice(0..0, divided.iter().cloned());
    }
    if let Some(contexts) = &mut setup.contexts {
        let needed = call_filter::contexts_of(filters, &known.contexts).into_iter();
        let own = contexts.value.clone();
        let needed = needed.filter(|context| !own.contains(context));
        contexts.value.extend(needed);
    }
    Ok(())
}

/// Also records the requests of io_uring, if the module rtrace-events has their events. Through perf, the events would cost
/// each trace, and only root may record them.
fn request(place: &Place, setup: &mut Setup) -> anyhow::Result<()> {
    let is_loaded = Path::new("/sys/module/rtrace_events").exists();
    let available = place.tracer()?.available_events()?;
    let events = requests::EVENTS.map(|name| format!("io_uring:{name}"));
    if is_loaded && events.iter().all(|event| available.contains(event)) {
        events.map(|event| setup.record_also(event));
    }
    Ok(())
}

/// Prints a recorded trace, to a file if one is given.
fn recorded(trace: &Trace, mut view: impl Printer, file: Option<&Path>) -> anyhow::Result<()> {
    let bar = match file {
        Some(_) => progress::reading(trace.bytes)?,
        // The lines show the progress.
        None => ProgressBar::hidden(),
    };
    let printed = print(trace, &mut view, |bytes| bar.inc(bytes));
    bar.finish_and_clear();
    match printed {
        Err(error) if live::is_closed(&error) => return Ok(()),
        printed => printed?,
    }
    let losses = view.account().total();
    view.account().warnings().iter().for_each(say);
    say(totals(&losses));
    Ok(losses.verdict()?)
}

/// The view for the lines that the options choose.
fn lines(output: Output, options: &Show) -> Lines {
    let choice = LineChoice {
        filters: options.filters.clone(),
        picked: options.picked.clone(),
        part: options.part.clone(),
        has_lines: !options.args.summary_only,
        bytes: options.args.bytes.unwrap_or(args::SHOWN_BYTES),
        is_json: options.args.json,
    };
    Lines::new(output, options.summary()).only(choice)
}

/// Prints the trace that a receiver gets, until the trace ends or a signal arrives.
fn received(peer: &Peer, name: Option<String>, options: &Show) -> anyhow::Result<()> {
    let signals = Signals::catch()?;
    let output = options.open()?;
    let mut lines = lines(output, options);
    match network::watch(peer, name, &signals, &mut lines) {
        Err(error) if live::is_closed(&error) => return Ok(()),
        watched => watched?,
    }
    say(totals(&lines.account().total()));
    Ok(())
}

fn print(trace: &Trace, view: &mut impl View, progress: impl Fn(u64)) -> system::Result<()> {
    view.describe(&trace.metadata)?;
    let progress = |bytes| {
        progress(bytes);
        Ok::<_, system::Error>(())
    };
    each(trace, progress, |stream, item| {
        view.item(stream, item)?;
        Ok(ControlFlow::Continue(()))
    })?;
    view.end()
}

/// Records and prints events, and returns the exit code of the command, if there is one.
fn live(place: &Place, setup: &Setup, options: &Show) -> anyhow::Result<Code> {
    // Checked first, before rtrace makes a session or starts a thread in vain.
    let command = options.args.command.as_slice();
    let program = match launch::find(command) {
        Ok(program) => program,
        Err(code) => return Ok(code),
    };
    let program = program.as_slice();
    let output = options.open()?;
    let ourselves = process::id().into();
    if options.is_tree {
        let graph = Graph::new(output).hide(ourselves);
        return look(place, setup, options, program, graph);
    }
    let frames = options.args.stack_trace.then(Frames::live).transpose()?;
    let lines = lines(output, options).files(options.files).frames(frames);
    let lines = lines.hide(Hidden {
        process: Some(ourselves),
        // Until the execve, the new process still executes rtrace's own code.
        before: (!command.is_empty() && setup.tasks.pids.is_none()).then_some("execve"),
        forms: options.unprinted.clone(),
        chosen: options.chosen.clone(),
    });
    look(place, setup, options, program, lines)
}

/// Records a session and passes its events to `view`. `program` is the file of the command, if there is one.
fn look(
    place: &Place,
    setup: &Setup,
    options: &Show,
    program: &[PathBuf],
    view: impl View + 'static,
) -> anyhow::Result<Code> {
    let command = options.args.command.as_slice();
    // If processes are chosen, rtrace is not among them.
    let is_everybody = setup.tasks.pids.is_none() && command.is_empty();
    let to_terminal = options.file().is_none() && stdout().is_terminal();
    let not = || match is_everybody {
        true => feedback::threads_of_ours(to_terminal),
        false => Vec::new(),
    };
    live::look(place, setup, &not, program, view, |recording| {
        let spawned = launch::spawn(command, |command| {
            setup.tasks.spawn(recording.session, command)
        });
        match spawned {
            Ok(child) => recording.wait(child),
            Err(code) => Ok(code),
        }
    })
}
