// SPDX-License-Identifier: GPL-2.0

//! `rtrace export folded`: one line for each call stack, with its count, as input of flame graphs.
//! `rtrace export flamegraph`: the flame graph itself.

use super::format::{Format, Loss, Now, Task};
use super::wakers::Wakers;
use analysis::schedule::{Schedule, Span};
use analysis::schedule_events::Activity;
use analysis::tasks::Life;
use analysis::unit_of;
use ctf::{Clock, Event, Metadata};
use inferno::flamegraph::color::{BasicPalette, MultiPalette};
use inferno::flamegraph::{self, Palette};
use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::io::{self, Write};
use symbols::{Place, Side, Stacks, Symbols};
use system::printing::Line;

/// Output format of the counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Lines.
    Lines,
    /// A flame graph in SVG.
    Picture,
}

/// The quantity that stacks count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counts {
    /// Events.
    #[default]
    Events,
    /// Time for which threads were blocked.
    OffCpu,
    /// The same time, by the stacks of the sleeper and of its wakers.
    OffWake,
}

/// Counts stacks. Memory grows with the number of different stacks.
pub struct Folded {
    /// Stacks by stream class.
    stacks: Vec<Stacks>,
    symbols: Symbols,
    clock: Clock,
    counts: HashMap<String, u64>,
    /// Whether a stack counts the nanoseconds for which threads were blocked. Otherwise each stack counts 1.
    is_off_cpu: bool,
    /// Line of the stack of each blocked thread.
    blocked: HashMap<(i64, Life), String>,
    /// The wakers, if their stacks are joined to the lines.
    wakers: Option<Wakers>,
    shape: Shape,
    line: String,
}

impl Folded {
    /// For a trace with this description; none if no event of the trace has a stack. If `wakers` are given, stacks count
    /// with those of the wakers.
    pub fn new(
        metadata: &Metadata,
        symbols: Symbols,
        is_off_cpu: bool,
        wakers: Option<Wakers>,
        shape: Shape,
    ) -> Option<Self> {
        Some(Self {
            wakers,
            stacks: Stacks::of_all(metadata)?,
            symbols,
            clock: metadata.clock,
            counts: HashMap::new(),
            is_off_cpu,
            blocked: HashMap::new(),
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
                // Readers split a line at these characters.
                line.push_str(&comm.replace([';', ' '], "_"));
            }
            _ => line.push_str("[unknown]"),
        }
        let comm = line.len();
        let stacks = &stacks[event.layout.stream_id as usize];
        let tid = now.task.map(|task| task.tid);
        if let Some(cut) = stacks.cut(event) {
            write!(line, ";{cut}")?;
        }
        for frame in stacks.frames(event, Side::User).rev() {
            line.push(';');
            match tid.and_then(|tid| symbols.user(tid, now.ns, frame.code())) {
                Some(
                    place @ Place {
                        function: Some(function),
                        ..
                    },
                ) => {
                    line.push_str(&function.name.replace(';', ":"));
                    for inlined in place.inlined().rev() {
                        write!(line, ";{}", inlined.replace(';', ":"))?;
                    }
                }
                Some(place) => write!(line, "[{}]", place.file.name().replace(';', ":"))?,
                None => write!(line, "{:#x}", frame.address)?,
            }
        }
        // The suffix by which flame graphs recognize kernel functions.
        for frame in stacks.frames(event, Side::Kernel).rev() {
            match symbols.kernel(now.ns, frame.code()) {
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
        let (title, unit, palette) = match self.is_off_cpu {
            false => ("CPU", "samples", Palette::Multi(MultiPalette::Java)),
            true => ("Off CPU", "us", Palette::Basic(BasicPalette::Blue)),
        };
        let (title, palette) = match self.wakers {
            Some(_) => ("Off CPU, with wakers", Palette::Multi(MultiPalette::Wakeup)),
            None => (title, palette),
        };
        options.title = title.to_owned();
        options.colors = palette;
        options.count_name = unit.to_owned();
        // With a hash, the colours are the same in each export.
        options.hash = true;
        let lines = lines.iter().map(String::as_str);
        flamegraph::from_lines(&mut options, lines, out)
    }
}

impl Folded {
    /// Ends the sleeps whose wakers `event` names.
    fn wake(&mut self, event: &Event<'_>, now: &Now<'_>) {
        let Some(mut wakers) = self.wakers.take() else {
            return;
        };
        let ended = wakers.event(event, now, |handler| self.waker(event, now, handler));
        self.wakers = Some(wakers);
        self.count_woken(ended);
    }

    /// Counts sleeps with the stacks of their wakers. The wait for a CPU that follows counts for the same line.
    fn count_woken(&mut self, ended: impl IntoIterator<Item = (Span, String)>) {
        for (span, waker) in ended {
            if let Some(line) = self.blocked.get_mut(&(span.tid, span.life)) {
                line.push_str(&waker);
                count(&mut self.counts, line, self.clock.nanoseconds(span.ticks()));
            }
        }
    }

    /// Returns the stack of a waker, the innermost function first, and its name at the end. An interrupt has the kernel's
    /// functions.
    fn waker(&mut self, event: &Event<'_>, now: &Now<'_>, handler: Option<&str>) -> String {
        let mut text = String::new();
        let stacks = &self.stacks[event.layout.stream_id as usize];
        for frame in stacks.frames(event, Side::Kernel) {
            let _ = match self.symbols.kernel(now.ns, frame.code()) {
                Some(symbol) => write!(text, ";{}_[k]", symbol.name),
                None => write!(text, ";{:#x}_[k]", frame.address),
            };
        }
        if let Some(handler) = handler {
            let _ = write!(text, ";[{}]", handler.replace([';', ' '], "_"));
            return text;
        }
        let tid = now.task.map(|task| task.tid);
        for frame in stacks.frames(event, Side::User) {
            match tid.and_then(|tid| self.symbols.user(tid, now.ns, frame.code())) {
                Some(Place {
                    function: Some(function),
                    ..
                }) => {
                    let _ = write!(text, ";{}", function.name.replace(';', ":"));
                }
                Some(place) => {
                    let _ = write!(text, ";[{}]", place.file.name().replace(';', ":"));
                }
                None => {
                    let _ = write!(text, ";{:#x}", frame.address);
                }
            }
        }
        let comm = now.task.and_then(|task| task.comm);
        let comm = comm.map_or("[unknown]".to_owned(), |comm| Line(comm).to_string());
        text + ";" + &comm.replace([';', ' '], "_")
    }
}

/// Adds to the count of a line.
fn count(counts: &mut HashMap<String, u64>, line: &str, more: u64) {
    match counts.get_mut(line) {
        Some(count) => *count += more,
        None => drop(counts.insert(line.to_owned(), more)),
    }
}

/// The trace has no stack to draw.
#[derive(Debug, thiserror::Error)]
#[error("none of the chosen events has a call stack: there is nothing to draw")]
struct Nothing;

impl Format for Folded {
    fn event(&mut self, event: &Event<'_>, now: &Now<'_>, _out: &mut dyn Write) -> io::Result<()> {
        let is_idle = matches!(now.task, Some(Task { tid: 0, .. }));
        // An idle CPU would fill the picture.
        let is_left_out = is_idle && unit_of(&event.layout.name).is_some();
        if self.shape == Shape::Picture && is_left_out {
            return Ok(());
        }
        if !self.is_off_cpu {
            if self.fold(event, now).map_err(io::Error::other)? {
                count(&mut self.counts, &self.line, 1);
            }
            return Ok(());
        }
        self.wake(event, now);
        let Some(switch) = now.switch.filter(|switch| switch.prev_tid != 0) else {
            return Ok(());
        };
        let thread = (switch.prev_tid, now.schedule.life(switch.prev_tid));
        self.blocked.remove(&thread);
        let is_blocked = matches!(
            now.schedule.state(thread.0),
            Some((Activity::Blocked(_), _))
        );
        if is_blocked && self.fold(event, now).map_err(io::Error::other)? {
            self.blocked.insert(thread, self.line.clone());
        }
        Ok(())
    }

    /// A blocked thread is off the CPU until it runs, so its wait for the CPU counts too.
    fn span(&mut self, span: &Span, _schedule: &Schedule, _out: &mut dyn Write) -> io::Result<()> {
        let is_off = matches!(
            span.state,
            Activity::Blocked(_) | Activity::Runnable { woken: true }
        );
        let thread = (span.tid, span.life);
        if let Some(wakers) = &mut self.wakers {
            let ended = wakers.without_waker(thread);
            let is_blocked = matches!(span.state, Activity::Blocked(_));
            if is_blocked && span.is_complete && self.blocked.contains_key(&thread) {
                wakers.slept(span);
            }
            self.count_woken(ended);
            if is_blocked {
                return Ok(());
            }
        }
        if is_off && span.is_complete {
            if let Some(line) = self.blocked.get(&(span.tid, span.life)) {
                count(&mut self.counts, line, self.clock.nanoseconds(span.ticks()));
            }
        }
        Ok(())
    }

    /// Counts have no place for a loss.
    fn loss(&mut self, _loss: &Loss, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    /// A blocked thread may have run during the gap, so its stack is forgotten.
    fn lost(&mut self, _ns: u64, schedule: &Schedule, _out: &mut dyn Write) -> io::Result<()> {
        let wakers = self.wakers.as_mut();
        let ended = wakers.map(|wakers| wakers.lost(schedule));
        self.count_woken(ended.into_iter().flatten());
        let is_known = |tid: i64| schedule.state(tid).is_some();
        self.blocked.retain(|(tid, _), _| is_known(*tid));
        Ok(())
    }

    fn end(&mut self, _ns: u64, out: &mut dyn Write) -> io::Result<()> {
        let ended = self.wakers.as_mut().map(Wakers::rest);
        self.count_woken(ended.into_iter().flatten());
        let unit = if self.is_off_cpu { 1000 } else { 1 };
        let lines = self.counts.iter();
        let mut lines: Vec<_> = lines.map(|(line, count)| (line, count / unit)).collect();
        lines.retain(|(_, count)| *count > 0);
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
