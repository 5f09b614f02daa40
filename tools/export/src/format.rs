// SPDX-License-Identifier: GPL-2.0

//! Interface between the formats and the [pass](super::pass) over the trace.

use analysis::interrupts::Interrupt;
use analysis::schedule::{Schedule, Span};
pub use analysis::whose::Task;
use analysis::Moment;
use ctf::Event;
use std::fmt::{self, Display, Formatter};
use std::io::{self, Write};
use std::ops::Deref;

/// Makes a file from the events of a trace, in order of time.
pub trait Format {
    /// Writes the begin of the file. The trace began at `ns`, in nanoseconds of its clock.
    fn begin(&mut self, _ns: u64, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    /// Takes a chosen event.
    fn event(&mut self, event: &Event<'_>, now: &Now<'_>, out: &mut dyn Write) -> io::Result<()>;

    /// Takes a place where events are missing.
    fn loss(&mut self, loss: &Loss, out: &mut dyn Write) -> io::Result<()>;

    /// Takes the end of an activity of a thread. The activity may also end because its state is unknown from
    /// here on.
    fn span(&mut self, _span: &Span, _schedule: &Schedule, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    /// Takes a handled interrupt whose events were chosen.
    fn interrupt(
        &mut self,
        _interrupt: &Interrupt<'_>,
        _schedule: &Schedule,
        _out: &mut dyn Write,
    ) -> io::Result<()> {
        Ok(())
    }

    /// From `ns` on, events of a CPU may be missing. The schedule knows which CPU.
    fn lost(&mut self, _ns: u64, _schedule: &Schedule, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    /// Writes the end of the file. The chosen range ended at `ns`.
    fn end(&mut self, _ns: u64, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

/// Context of an event.
#[derive(Clone, Copy, Debug)]
pub struct Now<'a> {
    /// The trace's clock, in nanoseconds.
    pub ns: u64,
    /// The number of the CPU.
    pub cpu: u32,
    /// State of the engine.
    pub moment: Moment<'a>,
}

impl<'a> Deref for Now<'a> {
    type Target = Moment<'a>;

    fn deref(&self) -> &Moment<'a> {
        &self.moment
    }
}

/// Events that are missing on a CPU.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// The CPU.
    pub cpu: u32,
    /// The begin of the time in which they may be missing, in nanoseconds of the trace's clock.
    pub ns: u64,
    /// The end of that time.
    pub until: u64,
    /// Events that were discarded one by one.
    pub events: u64,
    /// Packets missing between others.
    pub packets: u64,
    /// Bytes of the trace that are damaged there.
    pub damaged: u64,
}

/// The same words as in ftrace.
impl Display for Loss {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.damaged > 0 {
            return write!(f, "[DAMAGED {} BYTES]", self.damaged);
        }
        match (self.events, self.packets) {
            (events, 0) => write!(f, "[LOST {events} EVENTS]"),
            (0, packets) => write!(f, "[LOST {packets} PACKETS]"),
            (events, packets) => write!(f, "[LOST {events} EVENTS AND {packets} PACKETS]"),
        }
    }
}
