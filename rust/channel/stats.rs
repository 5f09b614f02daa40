// SPDX-License-Identifier: GPL-2.0

//! Counters of a channel: the text of its `stats` file.

use super::Channel;
use crate::ring::lost::Lost;
use crate::sys::cpu;
use core::fmt::{self, Write};
use core::ops::AddAssign;
use kernel::prelude::*;

/// One CPU's counts, or the sum of several.
#[derive(Clone, Copy, Default)]
struct Counts {
    recorded: u64,
    overwritten: u64,
    full: u64,
    wrapped: u64,
    too_large: u64,
    nested: u64,
    no_buffer: u64,
    busy: u64,
    missed: u64,
    packets: u64,
    bytes: u64,
    read_packets: u64,
    read_records: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        for (sum, value) in self.columns_mut().into_iter().zip(other.columns()) {
            *sum = sum.wrapping_add(value);
        }
    }
}

impl Counts {
    const NAMES: &'static str =
        "recorded overwritten full wrapped too_large nested no_buffer busy missed \
                                 packets bytes read_packets read_records";

    fn columns(self) -> [u64; 13] {
        let mut copy = self;
        copy.columns_mut().map(|column| *column)
    }

    fn columns_mut(&mut self) -> [&mut u64; 13] {
        [
            &mut self.recorded,
            &mut self.overwritten,
            &mut self.full,
            &mut self.wrapped,
            &mut self.too_large,
            &mut self.nested,
            &mut self.no_buffer,
            &mut self.busy,
            &mut self.missed,
            &mut self.packets,
            &mut self.bytes,
            &mut self.read_packets,
            &mut self.read_records,
        ]
    }

    fn of(channel: &Channel, cpu: u32) -> Option<Self> {
        let no_buffer = channel.no_buffer(cpu);
        let Some(stream) = channel.stream(cpu) else {
            return (no_buffer != 0).then(|| Self {
                no_buffer,
                ..Self::default()
            });
        };
        let ring = stream.ring();
        let lost = |reason| ring.lost().get(reason);
        let (packets, bytes) = stream.buffer().delivered();
        let cursor = stream.cursor.lock();
        Some(Self {
            recorded: ring.recorded(),
            overwritten: ring.overwritten(),
            full: lost(Lost::Full),
            wrapped: lost(Lost::Wrapped),
            too_large: lost(Lost::TooLarge),
            nested: lost(Lost::Nested),
            no_buffer,
            busy: lost(Lost::Busy),
            missed: 0,
            packets,
            bytes,
            read_packets: cursor.packets,
            read_records: cursor.records,
        })
    }
}

/// The counts of a channel.
#[derive(Default)]
pub(crate) struct StatsTable {
    /// Each CPU that has a buffer, or that needed one.
    cpus: KVec<(u32, Counts)>,
    /// Events for which the kernel called no probe. Of those, no CPU is known.
    missed: u64,
}

impl StatsTable {
    /// The current counts. They are exact when the trace is over. May sleep.
    pub(crate) fn of(channel: &Channel) -> Result<Self> {
        let mut rows = KVec::new();
        for cpu in cpu::possible() {
            if let Some(counts) = Counts::of(channel, cpu) {
                rows.push((cpu, counts), GFP_KERNEL)?;
            }
        }
        Ok(Self {
            cpus: rows,
            missed: channel.entrance.missed(),
        })
    }

    /// Writes a line of names, a line for each CPU, and a line with their sum.
    pub(crate) fn write(&self, out: &mut dyn Write) -> fmt::Result {
        let row = |out: &mut dyn Write, counts: Counts| -> fmt::Result {
            for column in counts.columns() {
                write!(out, " {column}")?;
            }
            out.write_char('\n')
        };
        writeln!(out, "cpu {}", Counts::NAMES)?;
        let mut total = Counts {
            missed: self.missed,
            ..Counts::default()
        };
        for &(cpu, counts) in &self.cpus {
            write!(out, "{cpu}")?;
            row(out, counts)?;
            total += counts;
        }
        out.write_str("total")?;
        row(out, total)
    }
}
