// SPDX-License-Identifier: GPL-2.0

//! `rtrace export`: a trace in the formats of other tools.

#![forbid(unsafe_code)]

mod aux;
mod choice;
mod chrome;
mod csv;
mod csv_row;
mod folded;
mod folder;
mod format;
mod ftrace;
mod lttng;
mod nameless;
mod names;
mod output;
mod pass;
mod perf_script;
mod perfetto;
mod pprof;
mod tables;
mod text;
mod values;
mod wakers;

pub use aux::export as aux;
pub use choice::Choice;
pub use csv_row::CsvRow;
pub use ftrace::Line;
pub use nameless::Nameless;
pub use names::save_names;
pub use output::{Output, Target};
pub use pass::Exported;
pub use tables::{announce, export as tables, host, read, Tables};

use analysis::loss::{Content, Losses};
use analysis::whose::Whose;
use analysis::{unit_of, Catalogue, EventKey, Missing};
use anyhow::{bail, Context};
use chrome::Chrome;
use csv::Csv;
use ctf::Metadata;
pub use folded::Counts;
use folded::{Folded, Shape};
use format::Format;
use perf_script::PerfScript;
use perfetto::Perfetto;
use pprof::Pprof;
use std::collections::HashSet;
use std::io;
use std::path::Path;
use store::Trace;
use symbols::{Stacks, Symbols};
use system::signals::Signals;
use terminal::{is_closed, progress, say, tell};
use text::Text;
use wakers::Wakers;

/// A format that takes the events in order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventFormat {
    /// Perfetto's protobuf.
    Perfetto,
    /// Chrome's JSON.
    Chrome,
    /// Rows.
    Csv,
    /// ftrace's text.
    Text,
    /// Call stacks with their counts, or with the time for which threads were blocked.
    Folded {
        /// The quantity that stacks count.
        counts: Counts,
    },
    /// Flame graph of the call stacks.
    Flamegraph {
        /// The quantity that stacks count.
        counts: Counts,
    },
    /// pprof's protobuf.
    Pprof,
    /// perf's text.
    PerfScript,
}

impl EventFormat {
    fn format<'a>(
        self,
        dir: &Path,
        metadata: &'a Metadata,
        chosen: &HashSet<EventKey>,
    ) -> Result<Box<dyn Format + 'a>, Missing> {
        let symbols = || match Stacks::of_all(metadata) {
            Some(_) => Symbols::of(dir, metadata),
            // Without stacks no symbols are needed, and no warning about them.
            None => Symbols::default(),
        };
        Ok(match self {
            Self::Perfetto => Box::new(Perfetto::new(metadata)),
            Self::Chrome => Box::new(Chrome::new(metadata, chosen)),
            Self::Csv => Box::new(Csv::new(metadata, chosen)),
            Self::Text => Box::new(Text::new(metadata, symbols())),
            Self::PerfScript => Box::new(PerfScript::new(metadata, symbols())),
            Self::Folded { counts } | Self::Flamegraph { counts } => {
                let (shape, option) = match self {
                    Self::Folded { .. } => (Shape::Lines, "`export folded`"),
                    _ => (Shape::Picture, "`export flamegraph`"),
                };
                let catalogue = Catalogue::new(metadata);
                if counts == Counts::OffCpu && !catalogue.has_switches() {
                    return Err(Missing {
                        option: "--off-cpu",
                        events: "sched_switch",
                        record: "-e sched_switch --context comm,callstack-kernel,callstack-user"
                            .into(),
                    });
                }
                let wakers = match counts {
                    Counts::OffWake => Wakers::new(&catalogue),
                    _ => None,
                };
                let is_complete = wakers.is_some() && catalogue.has_switches();
                if counts == Counts::OffWake && !is_complete {
                    return Err(Missing {
                        option: "--off-wake",
                        events: "sched_switch and sched_waking",
                        record: "-e sched,irq -e 'timer_*expire*' --context comm,callstack-kernel,callstack-user"
                            .into(),
                    });
                }
                let is_off_cpu = counts != Counts::Events;
                let folded = Folded::new(metadata, symbols(), is_off_cpu, wakers, shape);
                Box::new(folded.ok_or(without_stacks(option))?)
            }
            Self::Pprof => {
                let unit = sample(metadata).and_then(unit_of);
                let pprof = Pprof::new(metadata, symbols(), unit);
                Box::new(pprof.ok_or(without_stacks("`export pprof`"))?)
            }
        })
    }

    /// Whether the format takes only samples, if the trace has samples.
    fn is_of_samples(self) -> bool {
        matches!(
            self,
            Self::Flamegraph {
                counts: Counts::Events
            } | Self::Pprof
        )
    }

    /// Warns about events that the format needs and the trace lacks.
    fn say_what_is_missing(self, metadata: &Metadata) {
        let has_switches = Catalogue::new(metadata).has_switches();
        let mut classes = metadata.streams.iter();
        let has_tid = classes.all(|class| Whose::of(class).has_tid());
        if !has_switches && matches!(self, Self::Perfetto | Self::Chrome) {
            say("the trace has no sched_switch: the thread that runs on a CPU is unknown");
        }
        if !has_switches && !has_tid {
            say("the trace has neither sched_switch nor the context tid: the threads of its events are unknown");
        }
    }
}

/// Error for a trace without stacks.
fn without_stacks(option: &'static str) -> Missing {
    Missing {
        option,
        events: "call stacks",
        record: "--context comm,callstack-kernel,callstack-user".into(),
    }
}

/// Returns the name of the trace's sample event, if the trace has one.
fn sample(metadata: &Metadata) -> Option<&str> {
    let layouts = metadata.streams.iter().flat_map(|s| s.events.values());
    let mut names = layouts.map(|layout| layout.name.as_str());
    names.find(|name| unit_of(name).is_some())
}

/// Catches signals, so that an interrupted export deletes its unfinished output.
struct Interruption(Signals);

impl Interruption {
    fn catch() -> system::Result<Self> {
        Signals::catch().map(Self)
    }

    /// Returns an error if the process has caught a signal.
    fn check(&mut self) -> io::Result<()> {
        match self.0.pending().is_empty() {
            true => Ok(()),
            false => Err(io::Error::new(
                io::ErrorKind::Interrupted,
                "stopped by a signal",
            )),
        }
    }
}

/// Makes a folder `to` for LTTng's tools of the trace in `dir`.
pub fn lttng(dir: &Path, to: &Path) -> anyhow::Result<()> {
    let trace = Trace::open(dir)?;
    if trace.metadata.foreign.is_some() {
        let dir = dir.display();
        bail!("{dir}: another tracer recorded it; `export lttng` lays out traces of rtrace's");
    }
    let (files, damages) = lttng::export(dir, &trace, to)?;
    let losses = Losses::new(&Content::default(), None, damages);
    losses.warnings().iter().for_each(say);
    tell(format_args!("{files} files in {}", to.display()));
    Ok(losses.verdict()?)
}

/// Writes a trace in one pass to a file or a pipe.
pub fn stream(
    dir: &Path,
    kind: EventFormat,
    target: &Target,
    choice: &Choice,
) -> anyhow::Result<()> {
    let trace = Trace::open(dir)?;
    let mut choice = choice.clone();
    if choice.patterns.is_empty() && kind.is_of_samples() {
        // A profile does not count other events.
        choice.patterns = sample(&trace.metadata)
            .map(str::to_owned)
            .into_iter()
            .collect();
    }
    let choice = &choice;
    let chosen = choice.events(&trace.metadata)?;
    let format = kind.format(dir, &trace.metadata, &chosen);
    let mut format = format.with_context(|| dir.display().to_string())?;
    let mut output = target.open(!matches!(kind, EventFormat::Perfetto | EventFormat::Pprof))?;
    kind.say_what_is_missing(&trace.metadata);
    let bar = progress::reading(trace.bytes)?;
    let progress = |bytes| {
        bar.inc(bytes);
        Ok(())
    };
    let (format, out) = (&mut *format, output.writer());
    let exported = pass::read(&trace, choice, chosen, format, out, progress);
    bar.finish_and_clear();
    match exported.and_then(|exported| Ok(output.finish().map(|_| exported)?)) {
        Ok(exported) => {
            say_what_came_of_it(&exported, target);
            Ok(exported.losses.verdict()?)
        }
        // The reader of the pipe has closed it: no error.
        Err(error) if is_closed(&error) => Ok(()),
        Err(error) if error.is::<io::Error>() => {
            Err(error.context(format!("cannot write {target}")))
        }
        Err(error) => Err(error),
    }
}

fn say_what_came_of_it(exported: &Exported, target: &Target) {
    say_losses(exported);
    let lost = exported.losses.lost;
    if lost > 0 || matches!(target, Target::File { .. }) {
        say(format_args!(
            "{} events exported, {lost} lost",
            exported.events
        ));
    }
}

/// Prints warnings about the trace, and its lost or unknown events.
pub fn say_losses(exported: &Exported) {
    exported.warnings.iter().for_each(say);
    let Losses {
        packets_lost,
        packets_before,
        ..
    } = exported.losses;
    if exported.nameless > 0 {
        say(format_args!(
            "{} events have no known thread: their CPU has no sched_switch, or they were recorded after a loss",
            exported.nameless
        ));
    }
    if packets_lost > 0 {
        say(format_args!(
            "{packets_lost} packets are missing within the trace: they were overwritten{}",
            match exported.losses.damages.is_empty() {
                true => "",
                false => ", or are damaged",
            }
        ));
    }
    if packets_before > 0 {
        say(format_args!(
            "{packets_before} packets are missing before the first: a flight recorder keeps only the newest"
        ));
    }
}
