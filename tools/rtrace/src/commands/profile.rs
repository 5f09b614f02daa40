// SPDX-License-Identifier: GPL-2.0

//! `rtrace profile`: samples of what the CPUs do, recorded and summarised.

use crate::args::{Pace, ProfileArgs};
use crate::cause;
use crate::failure;
use crate::report::{report, Output};
use analysis::Question;
use anyhow::{bail, Context};
use control::{BufferSize, Mode, FIRST_CHANNEL};
use ctf::METADATA;
use export::Choice;
use network::{Destination, Directory};
use record::exit::Code;
use record::place::Place;
use record::recording::{new_directory, record, Record};
use record::run::condition::Conditions;
use record::session::channels::ChannelSetup;
use record::session::setup::Setup;
use record::session::tasks::Tasks;
use std::path::Path;

/// Contexts recorded with each sample.
const CONTEXTS: [&str; 5] = ["pid", "tid", "comm", "callstack-kernel", "callstack-user"];

/// Records, prints the profile, and returns the exit code of the recording.
pub fn profile(place: &Place, args: ProfileArgs) -> anyhow::Result<Code> {
    let event = event(place, args.by)?;
    let output = Output::new(args.json, args.rows, None);
    let mut options = options(args);
    options.setup.record_also(event.to_owned());
    // The recording refuses a named directory that has a trace already. That trace is not of this recording.
    let was_there = options.is_named && trace_in(&options).is_some();
    let recorded = record(place, &mut options);
    let code = recorded.unwrap_or_else(|error| failure::report(&error));
    if let Some(dir) = trace_in(&options).filter(|_| !was_there) {
        report(dir, &[Question::Profile], &Choice::default(), &output)?;
    }
    Ok(code)
}

/// The recording, without the event of the samples.
fn options(args: ProfileArgs) -> Record {
    let is_only = !args.command.is_empty() && !args.all_cpus && args.pids.is_empty();
    let mut setup = Setup {
        contexts: Some(CONTEXTS.map(str::to_owned).to_vec().into()),
        cpus: args.cpus.map(Into::into),
        sample_frequency: Some(args.freq.into()),
        tasks: Tasks::new(&args.pids, is_only),
        channels: vec![ChannelSetup::named(FIRST_CHANNEL)],
        ..Setup::default()
    };
    let size = args.buffer.unwrap_or(BufferSize::DEFAULT);
    setup.fill(Some(Mode::Discard), Some(size));
    Record {
        setup,
        conditions: Conditions {
            duration: args.duration,
            ..Conditions::default()
        },
        probes: Vec::new(),
        session: None,
        is_named: args.output.is_some(),
        destination: Destination::Directory(Directory {
            path: args.output.unwrap_or_else(new_directory),
            options: args.access.output(),
        }),
        symbols: true,
        debuginfod: args.debuginfod,
        cause: cause::newest,
        fail_on_loss: false,
        command: args.command,
    }
}

/// The directory of the profile, if a trace is in it.
fn trace_in(options: &Record) -> Option<&Path> {
    let Directory { path, .. } = options.destination.directory()?;
    path.join(METADATA).exists().then_some(path)
}

/// The event of a trigger; without one, that of the best trigger that this machine has.
fn event(place: &Place, pace: Option<Pace>) -> anyhow::Result<&'static str> {
    let available = place.tracer()?.available_events()?;
    let is_there = |pace: &Pace| available.iter().any(|name| name == pace.event());
    match pace {
        Some(pace) if !is_there(&pace) => bail!(
            "there is no event {}: this machine cannot count cycles (few virtual machines can), or the module is older than this command",
            pace.event()
        ),
        Some(pace) => Ok(pace.event()),
        None => {
            let best = Pace::ALL.into_iter().find(is_there);
            let best = best.context("the module has no events for samples: it is older than this command")?;
            Ok(best.event())
        }
    }
}
