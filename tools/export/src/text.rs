// SPDX-License-Identifier: GPL-2.0

//! `rtrace export text`: the format of tracefs' file `trace`.

use super::format::{Format, Loss, Now, Task};
use super::ftrace::Line;
use analysis::{key, EventKey};
use ctf::{Event, Metadata};
use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::io::{self, Write};
use symbols::{Place, Side, Stacks, Symbols};
use system::printing;

/// Begin of an ftrace file. Other tools recognize the format by the first line.
const HEAD: &str = "\
# tracer: nop
#
#                                _-----=> irqs-off/BH-disabled
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
";

/// Writes ftrace's text.
pub struct Text {
    lines: HashMap<EventKey, Line>,
    /// Stacks by stream class.
    stacks: Vec<Stacks>,
    symbols: Symbols,
    line: String,
}

impl Text {
    /// For a trace with this description.
    pub fn new(metadata: &Metadata, symbols: Symbols) -> Self {
        let layouts = metadata.streams.iter().flat_map(|s| s.events.values());
        Self {
            lines: layouts
                .map(|layout| (key(layout), Line::of(layout)))
                .collect(),
            stacks: metadata.streams.iter().map(Stacks::of).collect(),
            symbols,
            line: String::new(),
        }
    }

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
        head(line, now)?;
        format.write(event, line)?;
        line.push('\n');
        let stacks = &stacks[event.layout.stream_id as usize];
        for (side, title) in [
            (Side::Kernel, "<stack trace>"),
            (Side::User, "<user stack trace>"),
        ] {
            let cut = match side {
                Side::Kernel => None,
                Side::User => stacks.cut(event),
            };
            let mut frames = stacks.frames(event, side).peekable();
            if frames.peek().is_none() && cut.is_none() {
                continue;
            }
            head(line, now)?;
            writeln!(line, "{title}")?;
            for frame in frames {
                let address = frame.address;
                match side {
                    Side::Kernel => match symbols.kernel(now.ns, frame.code()) {
                        Some(symbol) => writeln!(line, " => {}", symbol.name)?,
                        None => writeln!(line, " => {address:#x}")?,
                    },
                    Side::User => {
                        let tid = now.task.map(|task| task.tid);
                        let place = tid.and_then(|tid| symbols.user(tid, now.ns, frame.code()));
                        user_frame(line, address, frame.is_caller, place)?;
                    }
                }
            }
            if let Some(cut) = cut {
                writeln!(line, " => {cut}")?;
            }
        }
        Ok(())
    }
}

/// Prints a frame like ftrace with the options sym-userobj and sym-addr. If the function is known, the frame
/// has its name and the offset in it.
fn user_frame(
    line: &mut String,
    address: u64,
    is_caller: bool,
    place: Option<Place<'_>>,
) -> fmt::Result {
    let behind = u64::from(is_caller);
    match place {
        Some(
            place @ Place {
                function: Some(function),
                file,
                offset,
                ..
            },
        ) => {
            for inlined in place.inlined() {
                writeln!(line, " => {}[{inlined}] <{address:016x}>", file.shown())?;
            }
            let offset = offset - function.offset + behind;
            let (name, file) = (&function.name, file.shown());
            writeln!(line, " => {file}[{name}+{offset:#x}] <{address:016x}>")
        }
        Some(Place { file, offset, .. }) => {
            let offset = offset + behind;
            writeln!(line, " => {}[+{offset:#x}] <{address:016x}>", file.shown())
        }
        None => writeln!(line, " =>  <{address:016x}>"),
    }
}

/// Appends the text before the event.
fn head(line: &mut String, now: &Now<'_>) -> fmt::Result {
    match now.task {
        Some(Task { tid: 0, .. }) => write!(line, "          <idle>-0      ")?,
        Some(Task { tid, comm, .. }) => {
            let start = line.len();
            write!(line, "{}", printing::Line(comm.unwrap_or(b"<...>")))?;
            let width = line[start..].chars().count();
            line.insert_str(start, &"                "[..16_usize.saturating_sub(width)]);
            write!(line, "-{tid:<7}")?;
        }
        None => write!(line, "           <...>-?      ")?,
    }
    // Microseconds, rounded like in ftrace.
    let us = now.ns.saturating_add(500) / 1000;
    let (s, us) = (us / 1_000_000, us % 1_000_000);
    write!(line, " [{:03}] ..... {s:>5}.{us:06}: ", now.cpu)
}

impl Format for Text {
    fn begin(&mut self, _ns: u64, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(HEAD.as_bytes())
    }

    fn event(&mut self, event: &Event<'_>, now: &Now<'_>, out: &mut dyn Write) -> io::Result<()> {
        self.add(event, now).map_err(io::Error::other)?;
        out.write_all(self.line.as_bytes())
    }

    fn loss(&mut self, loss: &Loss, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "CPU:{} {loss}", loss.cpu)
    }
}
