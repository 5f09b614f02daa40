// SPDX-License-Identifier: GPL-2.0

//! `rtrace export folded`: call stacks and how often each was there, a line each, as flame graphs take them; and
//! `rtrace export flamegraph`: such a picture.

use super::format::{Format, Loss, Now, Task};
use super::values::Line;
use super::weights::Weights;
use analysis::schedule::Schedule;
use analysis::unit_of;
use ctf::{Event, Metadata};
use inferno::flamegraph::color::{BasicPalette, MultiPalette};
use inferno::flamegraph::{self, Palette};
use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::io::{self, Write};
use symbols::{Place, Side, Stacks, Symbols};

/// What becomes of the counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Lines.
    Lines,
    /// A picture, SVG.
    Picture,
}

/// Counts stacks. Memory grows with how many different ones there are.
pub struct Folded {
    /// By stream class.
    stacks: Vec<Stacks>,
    symbols: Symbols,
    counts: HashMap<String, u64>,
    weights: Weights,
    shape: Shape,
    line: String,
}

impl Folded {
    /// Of a trace with this description; none if no event of it has a stack.
    pub fn new(
        metadata: &Metadata,
        symbols: Symbols,
        weights: Weights,
        shape: Shape,
    ) -> Option<Self> {
        Some(Self {
            stacks: Stacks::of_all(metadata)?,
            symbols,
            counts: HashMap::new(),
            weights,
            shape,
            line: String::new(),
        })
    }

    /// Makes the line of an event, without its count; false if it has no stack.
    fn fold(&mut self, event: &Event<'_>, now: &Now<'_>) -> Result<bool, fmt::Error> {
        let Self {
            stacks,
            symbols,
            line,
            ..
        } = self;
        line.clear();
        match now.task {
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
        let tid = now.task.map(|task| task.tid);
        for frame in stacks.frames(event, Side::User).rev() {
            line.push(';');
            match tid.and_then(|tid| symbols.user(tid, now.ns, frame.code())) {
                Some(Place {
                    function: Some(function),
                    ..
                }) => line.push_str(&function.name.replace(';', ":")),
                Some(place) => write!(line, "[{}]", place.file.name().replace(';', ":"))?,
                None => write!(line, "{:#x}", frame.address)?,
            }
        }
        // How flame graphs know the kernel's.
        for frame in stacks.frames(event, Side::Kernel).rev() {
            match symbols.kernel(frame.code()) {
                Some(symbol) => write!(line, ";{}_[k]", symbol.name)?,
                None => write!(line, ";{:#x}_[k]", frame.address)?,
            }
        }
        Ok(line.len() > comm)
    }
}

impl Folded {
    fn draw(&self, lines: &[String], out: &mut dyn Write) -> io::Result<()> {
        if lines.is_empty() {
            return Err(io::Error::other(Nothing));
        }
        let mut options = flamegraph::Options::default();
        let (title, palette) = match self.weights {
            Weights::Count => ("CPU", Palette::Multi(MultiPalette::Java)),
            Weights::OffCpu(_) => ("Off CPU", Palette::Basic(BasicPalette::Blue)),
        };
        options.title = title.to_owned();
        options.colors = palette;
        options.count_name = self.weights.unit().to_owned();
        // The same each time.
        options.hash = true;
        let lines = lines.iter().map(String::as_str);
        flamegraph::from_lines(&mut options, lines, out)
    }
}

/// There is nothing to draw.
#[derive(Debug, thiserror::Error)]
#[error("no event that was chosen has a call stack: there is nothing to draw")]
struct Nothing;

impl Format for Folded {
    fn event(&mut self, event: &Event<'_>, now: &Now<'_>, _out: &mut dyn Write) -> io::Result<()> {
        let is_idle = matches!(now.task, Some(Task { tid: 0, .. }));
        // A CPU that has nothing to do would fill the picture.
        let is_left_out = is_idle && unit_of(&event.layout.name).is_some();
        if !self.weights.wants(now) || self.shape == Shape::Picture && is_left_out {
            return Ok(());
        }
        let has_stack = self.fold(event, now).map_err(io::Error::other)?;
        let line = has_stack.then_some(self.line.as_str());
        if let Some((line, weight)) = self.weights.weigh(line, now) {
            match self.counts.get_mut(&*line) {
                Some(count) => *count += weight,
                None => drop(self.counts.insert(line.into_owned(), weight)),
            }
        }
        Ok(())
    }

    /// Counts cannot say it.
    fn loss(&mut self, _loss: &Loss, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn gap(
        &mut self,
        _cpu: usize,
        _ns: u64,
        _schedule: &Schedule,
        _out: &mut dyn Write,
    ) -> io::Result<()> {
        self.weights.forget();
        Ok(())
    }

    fn end(&mut self, _ns: u64, out: &mut dyn Write) -> io::Result<()> {
        let mut lines: Vec<_> = self.counts.iter().collect();
        lines.retain(|(_, count)| **count > 0);
        lines.sort();
        match self.shape {
            Shape::Lines => {
                let mut lines = lines.into_iter();
                lines.try_for_each(|(line, count)| writeln!(out, "{line} {count}"))
            }
            Shape::Picture => {
                let lines: Vec<_> = lines
                    .into_iter()
                    .map(|(line, count)| format!("{line} {count}"))
                    .collect();
                self.draw(&lines, out)
            }
        }
    }
}
