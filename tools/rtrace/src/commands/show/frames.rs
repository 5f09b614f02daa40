// SPDX-License-Identifier: GPL-2.0

//! The programs' call stacks of events, as lines below the line of the event.

use super::arguments::push;
use anyhow::bail;
use ctf::{Clock, Event};
use std::env;
use std::io;
use std::path::Path;
use store::Trace;
use symbols::{LivePrograms, Recorder, Side, Stacks, Symbols};
use system::printing;
use system::{Error, Result};

/// Writer of call stacks.
pub struct Frames {
    names: Names,
    /// Whether the names are those of the current events.
    are_renewed: bool,
}

/// Source of the names of functions.
enum Names {
    Recorded(Symbols),
    Live(Box<LivePrograms>),
}

impl Frames {
    /// The stacks of the trace in `dir`.
    pub fn recorded(dir: &Path, trace: &Trace) -> anyhow::Result<Self> {
        let mut classes = trace.metadata.streams.iter();
        if !classes.any(|class| Stacks::of(class).has(Side::User)) {
            bail!(
                "{}: the trace has no call stacks of programs; `rtrace record -g` records them",
                dir.display()
            );
        }
        Ok(Self::new(Names::Recorded(Symbols::of(
            dir,
            &trace.metadata,
        ))))
    }

    /// The stacks of a trace that will be recorded. From now on, the changes of programs are recorded.
    pub fn live() -> anyhow::Result<Self> {
        let recorder = Recorder::begin(&env::temp_dir())?;
        let programs = LivePrograms::new(recorder);
        Ok(Self::new(Names::Live(Box::new(programs))))
    }

    fn new(names: Names) -> Self {
        Self {
            names,
            are_renewed: false,
        }
    }

    /// No more events for the moment.
    pub fn pause(&mut self) {
        self.are_renewed = false;
    }

    /// Before an event of a trace with this clock: takes the changes of programs, at the first event after a pause.
    pub fn renew(&mut self, clock: &Clock) -> Result<()> {
        if let Names::Live(programs) = &mut self.names {
            if !std::mem::replace(&mut self.are_renewed, true) {
                let renewed = programs.renew(clock).map_err(io::Error::other);
                renewed.map_err(Error::system("cannot read the mappings of programs"))?;
            }
        }
        Ok(())
    }

    /// Writes the stack of an event of this thread, a line for each function, as strace does.
    pub fn write(
        &mut self,
        out: &mut String,
        clock: &Clock,
        (stacks, tid): (&Stacks, i64),
        event: &Event<'_>,
    ) {
        let ns = clock.nanoseconds(event.timestamp);
        for frame in stacks.frames(event, Side::User) {
            let code = frame.code();
            let place = match &mut self.names {
                Names::Recorded(symbols) => symbols.user(tid, ns, code),
                Names::Live(programs) => programs.find(tid, ns, code),
            };
            let Some(place) = place else {
                push(out, format_args!(" > [unknown] [{:#x}]\n", frame.address));
                continue;
            };
            // As the frame's address, not that of the code.
            let offset = place.offset + (frame.address - code);
            push(out, format_args!(" > {}(", place.file.shown()));
            if let Some(function) = place.function {
                let name = printing::printable(&function.name);
                push(out, format_args!("{name}+{:#x}", offset - function.offset));
            }
            push(out, format_args!(") [{offset:#x}]\n"));
        }
        if let Some(cut) = stacks.cut(event) {
            push(out, format_args!(" > {cut}\n"));
        }
    }
}
