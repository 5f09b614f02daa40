// SPDX-License-Identifier: GPL-2.0

//! `rtrace profile`: samples of what the CPUs do, recorded and summarised.

use crate::args::ProfileArgs;
use crate::exit::Code;
use crate::failure;
use crate::options::{self, Profile};
use crate::place::Place;
use crate::recording::record;
use crate::report::report;
use analysis::choice::Choice;
use analysis::Question;
use anyhow::bail;
use clap::ValueEnum;
use ctf::METADATA;
use network::Directory;
use std::path::Path;

/// Trigger of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Pace {
    /// Cycles of the processor.
    Cycles,
    /// A timer.
    CpuClock,
}

impl Pace {
    /// The triggers, the most complete one first.
    const ALL: [Self; 2] = [Self::Cycles, Self::CpuClock];

    /// The event that the trigger fires.
    fn event(self) -> &'static str {
        match self {
            Self::Cycles => "profile:profile_cycles",
            Self::CpuClock => "profile:profile_cpu_clock",
        }
    }
}

/// Records, prints the profile, and returns the exit code of the recording.
pub fn profile(place: &Place, args: ProfileArgs) -> anyhow::Result<Code> {
    let mut options = options::profile(args);
    choose(place, &mut options)?;
    // The recording refuses a named directory that has a trace already. That trace is not of this recording.
    let was_there = options.record.is_named && trace_in(&options).is_some();
    let recorded = record(place, &mut options.record);
    let code = recorded.unwrap_or_else(|error| failure::report(&error));
    let dir = trace_in(&options).filter(|_| !was_there);
    if let Some(dir) = dir {
        report(
            dir,
            &[Question::Profile],
            &Choice::default(),
            &options.output,
        )?;
    }
    Ok(code)
}

/// The directory of the profile, if a trace is in it.
fn trace_in(options: &Profile) -> Option<&Path> {
    let Directory { path, .. } = options.record.destination.directory()?;
    path.join(METADATA).exists().then_some(path)
}

/// Adds the event of the trigger to the recording.
fn choose(place: &Place, options: &mut Profile) -> anyhow::Result<()> {
    let available = place.tracer()?.available_events()?;
    let is_there = |pace: &Pace| available.iter().any(|name| name == pace.event());
    let pace = match options.pace {
        Some(pace) if !is_there(&pace) => bail!(
            "there is no event {}: this machine cannot count cycles (few virtual machines can), or the module is older than this command",
            pace.event()
        ),
        Some(pace) => Some(pace),
        None => Pace::ALL.into_iter().find(is_there),
    };
    let Some(pace) = pace else {
        bail!("the module has no events for samples: it is older than this command");
    };
    options.record.setup.record_also(pace.event().to_owned());
    Ok(())
}
