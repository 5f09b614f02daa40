// SPDX-License-Identifier: GPL-2.0

//! `rtrace export perf-script`: the text that `perf script` prints.

use super::format::{Format, Loss, Now, Task};
use super::ftrace::Line;
use analysis::{key, EventKey};
use ctf::{Event, Metadata};
use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::io::{self, Write};
use symbols::{Place, Side, Stacks, Symbols};
use system::printing;

/// Writes perf's text.
pub struct PerfScript {
    lines: HashMap<EventKey, Line>,
    /// Stacks by stream class.
    stacks: Vec<Stacks>,
    symbols: Symbols,
    line: String,
}

impl PerfScript {
    /// For a trace with this description.
    pub fn new(metadata: &Metadata, symbols: Symbols) -> Self {
        let layouts = metadata.streams.iter().flat_map(|s| s.events.values());
        Self {
            lines: layouts
                .map(|layout| (key(layout), Line::named(layout)))
                .collect(),
            stacks: metadata.streams.iter().map(Stacks::of).collect(),
            symbols,
            line: String::new(),
        }
    }
}

impl PerfScript {
    fn add(&mut self, event: &Event<'_>, now: &Now<'_>) -> fmt::Result {
        let Self {
            lines,
            stacks,
            symbols,
            line,
        } = self;
        line.clear();
        let Some(format) = lines.get(&key(event.layout)) else {
            return Ok(());
        };
        let stacks = &stacks[event.layout.stream_id as usize];
        let (comm, tid) = match now.task {
            Some(Task { tid: 0, .. }) => ("swapper".to_owned(), 0),
            Some(Task {
                tid,
                comm: Some(comm),
                ..
            }) => (printing::Line(comm).to_string(), tid),
            Some(Task { tid, .. }) => (format!(":{tid}"), tid),
            None => (":-1".to_owned(), -1),
        };
        // perf aligns the names of tasks where there are no stacks.
        let width = if stacks.is_some() { 0 } else { 16 };
        let (s, us) = (now.ns / 1_000_000_000, now.ns % 1_000_000_000 / 1000);
        write!(
            line,
            "{comm:>width$} {tid:>7} [{:03}] {s:>5}.{us:06}: ",
            now.cpu
        )?;
        format.write(event, line)?;
        line.push('\n');
        for frame in stacks.frames(event, Side::Kernel) {
            let address = frame.address;
            write!(line, "\t{address:>16x} ")?;
            match symbols.kernel(now.ns, frame.code()) {
                Some(symbol) => {
                    let module = symbol.module.as_deref().unwrap_or("kernel.kallsyms");
                    let offset = address - symbol.address;
                    writeln!(line, "{}+{offset:#x} ([{module}])", symbol.name)?;
                }
                None => writeln!(line, "[unknown] ([kernel.kallsyms])")?,
            }
        }
        for frame in stacks.frames(event, Side::User) {
            let address = frame.address;
            let place = symbols.user(tid, now.ns, frame.code());
            if let Some(place) = &place {
                // perf writes `(inlined)` in the place of the file.
                for inlined in place.inlined() {
                    writeln!(line, "\t{address:>16x} {inlined}")?;
                }
            }
            write!(line, "\t{address:>16x} ")?;
            match place {
                Some(Place {
                    file,
                    offset,
                    function: Some(function),
                    ..
                }) => {
                    let offset = offset - function.offset + u64::from(frame.is_caller);
                    writeln!(line, "{}+{offset:#x} ({})", function.name, file.shown())?;
                }
                Some(place) => writeln!(line, "[unknown] ({})", place.file.shown())?,
                None => writeln!(line, "[unknown] ([unknown])")?,
            }
        }
        if let Some(cut) = stacks.cut(event) {
            writeln!(line, "\t{:>16x} {cut} ([unknown])", 0)?;
        }
        if stacks.is_some() {
            line.push('\n');
        }
        Ok(())
    }
}

impl Format for PerfScript {
    fn event(&mut self, event: &Event<'_>, now: &Now<'_>, out: &mut dyn Write) -> io::Result<()> {
        self.add(event, now).map_err(io::Error::other)?;
        out.write_all(self.line.as_bytes())
    }

    fn loss(&mut self, loss: &Loss, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "# CPU:{} {loss}", loss.cpu)
    }
}
