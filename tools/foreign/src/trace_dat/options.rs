// SPDX-License-Identifier: GPL-2.0

//! The options of a `trace.dat`: what the recorder wrote about the machine, the clock and lost events.

use crate::bytes::Cursor;
use system::Result;

/// The end of the options; in version 7 also the part that has options.
pub const DONE: u16 = 0;
const DATE: u16 = 1;
const STATISTICS: u16 = 2;
/// A buffer.
pub const BUFFER: u16 = 3;
const CLOCK: u16 = 4;
const UNAME: u16 = 5;
const OFFSET: u16 = 7;
const CPUS: u16 = 8;
const TRACE_ID: u16 = 11;
const TIME_SHIFT: u16 = 12;
const TSC: u16 = 14;
/// The header of sub-buffers.
pub const HEADER: u16 = 16;
/// The events of tracers.
pub const TRACER_EVENTS: u16 = 17;
/// The events of subsystems.
pub const EVENTS: u16 = 18;
/// The kernel's functions.
pub const KALLSYMS: u16 = 19;
/// The formats of trace_printk().
pub const PRINTK: u16 = 20;
/// The names of threads.
pub const COMMS: u16 = 21;
/// A buffer with the text of a latency tracer.
pub const BUFFER_TEXT: u16 = 22;

/// Values of the options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The nanoseconds to add to a time to get the time since the epoch.
    pub date: Option<i64>,
    /// Nanoseconds to add to all times.
    pub offset: i64,
    /// The clock.
    pub clock: String,
    /// The output of uname(1).
    pub uname: String,
    /// The number of CPUs.
    pub cpus: Option<u32>,
    /// The number of the trace.
    pub id: Option<u64>,
    /// The kernel's statistics of each CPU: events that were lost there.
    pub lost: u64,
    /// Multiplier and shift that make nanoseconds of the TSC.
    pub tsc: Option<(u32, u32)>,
    /// Whether times are to be moved to those of the host of a virtual machine.
    pub has_time_shift: bool,
    /// Whether the file has the text of a latency tracer.
    pub has_latency: bool,
}

impl Options {
    /// Reads an option. Options that tell nothing about events are skipped.
    pub fn read(&mut self, option: u16, at: &mut Cursor<'_>) -> Result<()> {
        match option {
            // The recorder writes microseconds.
            DATE => self.date = number(&at.text(at.left())?).map(|us| us.wrapping_mul(1000)),
            OFFSET => self.offset = number(&at.text(at.left())?).unwrap_or(0),
            STATISTICS => self.lost = self.lost.saturating_add(lost(&at.text(at.left())?)),
            CLOCK => {
                let text = at.text(at.left())?;
                let chosen = text
                    .split_once('[')
                    .and_then(|(_, rest)| rest.split_once(']'));
                self.clock = chosen.map_or(text.trim(), |(clock, _)| clock).to_owned();
            }
            UNAME => self.uname = at.text(at.left())?,
            CPUS => self.cpus = Some(at.u32()?),
            TRACE_ID => self.id = Some(at.u64()?),
            TIME_SHIFT => self.has_time_shift = true,
            TSC => self.tsc = Some((at.u32()?, at.u32()?)),
            _ => {}
        }
        Ok(())
    }
}

/// Parses a number as strtoll(3) does.
fn number(text: &str) -> Option<i64> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16)
            .ok()
            .map(|number| number as i64),
        None => text.parse().ok(),
    }
}

/// The lost events in the kernel's statistics of a CPU.
fn lost(text: &str) -> u64 {
    let count = |line: &str| {
        let (name, count) = line.split_once(':')?;
        let is_lost = matches!(name.trim(), "overrun" | "commit overrun" | "dropped events");
        is_lost.then(|| count.trim().parse::<u64>().ok())?
    };
    text.lines().filter_map(count).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_losses_are_parsed() {
        assert_eq!(number("0x10\n"), Some(16));
        assert_eq!(number("-7"), Some(-7));
        assert_eq!(number("x"), None);
        let text = "CPU: 0\nentries: 7\noverrun: 2\ncommit overrun: 0\nbytes: 9\ndropped events: 3\nread events: 8\n";
        assert_eq!(lost(text), 5);
    }
}
