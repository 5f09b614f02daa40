// SPDX-License-Identifier: GPL-2.0

//! `--folded`: call stacks and how often each was there, a line each, as flame graphs take them.

use super::format::{Format, Loss, Now, Task};
use super::stacks::{Side, Stacks};
use super::symbols::Symbols;
use super::values::Line;
use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::io::{self, Write};
use trace::ctf::{Event, Metadata};

/// Counts stacks. Memory grows with how many different ones there are.
pub struct Folded {
    /// By stream class.
    stacks: Vec<Stacks>,
    symbols: Symbols,
    counts: HashMap<String, u64>,
    line: String,
}

impl Folded {
    /// Of a trace with this description; none if no event of it has a stack.
    pub fn new(metadata: &Metadata, symbols: Symbols) -> Option<Self> {
        let stacks: Vec<_> = metadata.streams.iter().map(Stacks::of).collect();
        let mut layouts = metadata.streams.iter().flat_map(|s| s.events.values());
        let has_event = layouts.any(|layout| layout.name == Stacks::EVENT);
        (has_event || stacks.iter().any(Stacks::is_some)).then(|| Self {
            stacks,
            symbols,
            counts: HashMap::new(),
            line: String::new(),
        })
    }

    /// Makes the line of an event, without its count; false if it has no stack.
    fn fold(&mut self, event: &Event<'_>, task: Option<Task<'_>>) -> Result<bool, fmt::Error> {
        let Self {
            stacks,
            symbols,
            line,
            ..
        } = self;
        line.clear();
        match task {
            Some(Task { tid: 0, .. }) => line.push_str("swapper"),
            Some(Task {
                comm: Some(comm), ..
            }) => {
                let comm = Line(comm).to_string();
                // What a line is split at.
                line.push_str(&comm.replace([';', ' '], "_"));
            }
            _ => line.push_str("[unknown]"),
        }
        let comm = line.len();
        let stacks = &stacks[event.layout.stream_id as usize];
        for address in stacks.frames(event, Side::User).rev() {
            write!(line, ";{address:#x}")?;
        }
        // How flame graphs know the kernel's.
        for address in stacks.frames(event, Side::Kernel).rev() {
            match symbols.find(address) {
                Some((name, _)) => write!(line, ";{name}_[k]")?,
                None => write!(line, ";{address:#x}_[k]")?,
            }
        }
        Ok(line.len() > comm)
    }
}

impl Format for Folded {
    fn event(&mut self, event: &Event<'_>, now: &Now<'_>, _out: &mut dyn Write) -> io::Result<()> {
        if !self.fold(event, now.task).map_err(io::Error::other)? {
            return Ok(());
        }
        match self.counts.get_mut(&self.line) {
            Some(count) => *count += 1,
            None => drop(self.counts.insert(self.line.clone(), 1)),
        }
        Ok(())
    }

    /// Counts cannot say it.
    fn loss(&mut self, _loss: &Loss, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _ns: u64, out: &mut dyn Write) -> io::Result<()> {
        let mut lines: Vec<_> = self.counts.iter().collect();
        lines.sort();
        for (line, count) in lines {
            writeln!(out, "{line} {count}")?;
        }
        Ok(())
    }
}
