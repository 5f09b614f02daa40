// SPDX-License-Identifier: GPL-2.0

//! `rtrace export`: a trace in the formats of other tools.

mod choice;
mod chrome;
mod csv;
mod folded;
mod format;
mod ftrace;
mod lttng;
mod output;
mod pass;
mod perf_script;
mod perfetto;
mod stacks;
mod symbols;
mod text;
mod values;

pub use choice::{Choice, Time};
pub use output::Target;

use crate::analysis::losses::Losses;
use crate::analysis::{Catalogue, EventKey, Missing};
use crate::progress;
use crate::terminal::say;
use anyhow::Context;
use chrome::Chrome;
use csv::Csv;
use folded::Folded;
use format::{Format, TaskContexts};
use pass::Exported;
use perf_script::PerfScript;
use perfetto::Perfetto;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use symbols::Symbols;
use text::Text;
use trace::ctf::{Metadata, Trace};

/// What to export, how and where to.
pub enum Export {
    /// In one pass over the trace, to a file or a pipe.
    Stream {
        /// The trace.
        dir: PathBuf,
        /// The format.
        kind: Kind,
        /// Where to.
        target: Target,
        /// What of it.
        choice: Choice,
    },
    /// In a folder.
    Lttng {
        /// The trace.
        dir: PathBuf,
        /// The folder.
        to: PathBuf,
    },
}

/// A format that is made from the events in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Perfetto's protobuf.
    Perfetto,
    /// Chrome's JSON.
    Chrome,
    /// Rows.
    Csv,
    /// ftrace's text.
    Text,
    /// Call stacks with their counts.
    Folded,
    /// perf's text.
    PerfScript,
}

impl Kind {
    fn format<'a>(
        self,
        metadata: &'a Metadata,
        chosen: &HashSet<EventKey>,
    ) -> Result<Box<dyn Format + 'a>, Missing> {
        Ok(match self {
            Self::Perfetto => Box::new(Perfetto::new(metadata)),
            Self::Chrome => Box::new(Chrome::new(metadata, chosen)),
            Self::Csv => Box::new(Csv::new(metadata, chosen)),
            Self::Text => Box::new(Text::new(metadata, Symbols::of(metadata))),
            Self::PerfScript => Box::new(PerfScript::new(metadata, Symbols::of(metadata))),
            Self::Folded => {
                let folded = Folded::new(metadata, Symbols::of(metadata));
                Box::new(folded.ok_or(Missing {
                    option: "--folded",
                    events: "call stacks",
                    record: "--context comm,callstack-kernel,callstack-user",
                })?)
            }
        })
    }

    /// Says what the trace lacks for it.
    fn say_what_is_missing(self, metadata: &Metadata) {
        let has_switches = Catalogue::new(metadata).has_switches();
        let mut classes = metadata.streams.iter();
        let has_tid = classes.all(|class| TaskContexts::of(class).has_tid());
        if !has_switches && matches!(self, Self::Perfetto | Self::Chrome) {
            say("the trace has no sched_switch: no CPU shows who runs there");
        }
        if !has_switches && !has_tid {
            say("the trace has neither sched_switch nor the context tid: \
                 whose the events are is not known");
        }
    }
}

/// Exports a trace.
pub fn export(options: &Export) -> anyhow::Result<()> {
    match options {
        Export::Stream {
            dir,
            kind,
            target,
            choice,
        } => stream(dir, *kind, target, choice),
        Export::Lttng { dir, to } => {
            let files = lttng::export(dir, &Trace::open(dir)?, to)?;
            say(format_args!("{files} files in {}", to.display()));
            Ok(())
        }
    }
}

fn stream(dir: &Path, kind: Kind, target: &Target, choice: &Choice) -> anyhow::Result<()> {
    let trace = Trace::open(dir)?;
    let chosen = choice.events(&trace.metadata)?;
    let format = kind.format(&trace.metadata, &chosen);
    let mut format = format.with_context(|| dir.display().to_string())?;
    let mut output = target.open(kind != Kind::Perfetto)?;
    kind.say_what_is_missing(&trace.metadata);
    let bar = progress::reading(&trace)?;
    let progress = |bytes| bar.inc(bytes);
    let (format, out) = (&mut *format, output.writer());
    let exported = pass::read(&trace, choice, chosen, format, out, progress);
    bar.finish_and_clear();
    match exported.and_then(|exported| Ok(output.finish().map(|()| exported)?)) {
        Ok(exported) => {
            say_what_came_of_it(&exported, target);
            Ok(())
        }
        // Whoever closed it early has seen enough.
        Err(error) if is_closed(&error) => Ok(()),
        Err(error) if error.is::<io::Error>() => {
            Err(error.context(format!("cannot write {target}")))
        }
        Err(error) => Err(error),
    }
}

fn is_closed(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref().map(io::Error::kind);
    kind == Some(io::ErrorKind::BrokenPipe)
}

fn say_what_came_of_it(exported: &Exported, target: &Target) {
    exported.warnings.iter().for_each(say);
    let Losses {
        lost,
        packets_lost,
        packets_before,
        ..
    } = exported.losses;
    if exported.nameless > 0 {
        say(format_args!(
            "of {} events it is not known whose they are: they come before the first switch of their \
             CPU, or behind a loss",
            exported.nameless
        ));
    }
    if packets_lost > 0 {
        say(format_args!(
            "{packets_lost} packets are missing between others: they were overwritten"
        ));
    }
    if packets_before > 0 {
        say(format_args!(
            "{packets_before} packets are missing before the first: a flight recorder has the newest \
             only"
        ));
    }
    if lost > 0 || matches!(target, Target::File { .. }) {
        say(format_args!(
            "{} events exported, {lost} lost",
            exported.events
        ));
    }
}
