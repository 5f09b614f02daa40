// SPDX-License-Identifier: GPL-2.0

//! The functions in the call stacks of a trace, to be saved with it.

use super::format::{Format, Loss, Now};
use super::pass;
use super::Choice;
use crate::progress;
use crate::symbols::{Names, Place, Side, Stacks, Symbols};
use std::io::{self, Write};
use std::path::Path;
use trace::access::Access;
use trace::ctf::{Event, Trace};

/// Gathers functions.
struct Functions {
    /// By stream class.
    stacks: Vec<Stacks>,
    symbols: Symbols,
    names: Names,
}

/// Saves the names of the functions in the call stacks of the trace in `dir` with it.
pub fn save_names(dir: &Path, access: Access) -> anyhow::Result<()> {
    let trace = Trace::open(dir)?;
    let choice = Choice::default();
    let chosen = choice.events(&trace.metadata)?;
    let classes = trace.metadata.streams.iter();
    let mut functions = Functions {
        stacks: classes.map(Stacks::of).collect(),
        symbols: Symbols::of(dir, &trace.metadata),
        names: Names::default(),
    };
    let bar = progress::reading(&trace)?;
    let (none, progress) = (&mut io::sink(), |bytes| bar.inc(bytes));
    pass::read(&trace, &choice, chosen, &mut functions, none, progress)?;
    bar.finish_and_clear();
    functions.names.save(dir, trace.metadata.uuid, access)
}

impl Format for Functions {
    fn event(&mut self, event: &Event<'_>, now: &Now<'_>, _out: &mut dyn Write) -> io::Result<()> {
        let stacks = &self.stacks[event.layout.stream_id as usize];
        for frame in stacks.frames(event, Side::Kernel) {
            if let Some(symbol) = self.symbols.kernel(frame.code()) {
                if !self.names.kernel.contains(symbol) {
                    self.names.kernel.insert(symbol.clone());
                }
            }
        }
        let Some(task) = now.task else {
            return Ok(());
        };
        for frame in stacks.frames(event, Side::User) {
            let Some(Place { file, function, .. }) =
                self.symbols.user(task.tid, now.ns, frame.code())
            else {
                continue;
            };
            let Some(function) = function else {
                continue;
            };
            let functions = match self.names.files.get_mut(file) {
                Some(functions) => functions,
                None => self.names.files.entry(file.clone()).or_default(),
            };
            if !functions.contains(function) {
                functions.insert(function.clone());
            }
        }
        Ok(())
    }

    /// Nothing of it is saved.
    fn loss(&mut self, _loss: &Loss, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}
