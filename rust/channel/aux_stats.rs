// SPDX-License-Identifier: GPL-2.0

//! Counters of a channel's AUX areas: the text of its `aux_stats` file.

use super::Channel;
use crate::ring::aux::AuxCounts;
use crate::sys::cpu;
use core::fmt::{self, Write};
use kernel::prelude::*;

/// The counters of each CPU that has an area, or that needed one.
#[derive(Default)]
pub(crate) struct AuxTable(KVec<(u32, [u64; 7])>);

impl AuxTable {
    const NAMES: &'static str = "cpu chunks bytes read overwritten refused lost collisions";

    /// The current counts. They are exact when the trace is over. May sleep.
    pub(crate) fn of(channel: &Channel) -> Result<Self> {
        let mut rows = KVec::new();
        for cpu in cpu::possible() {
            let no_area = channel.no_area(cpu);
            let area = channel.area(cpu);
            let (counts, read) = match &area {
                Some(area) => (area.counts(), area.cursor.lock().read),
                None if no_area != 0 => (AuxCounts::default(), 0),
                None => continue,
            };
            let row = [
                counts.chunks,
                counts.bytes,
                read,
                counts.overwritten,
                counts.refused.wrapping_add(no_area),
                counts.lost,
                counts.collisions,
            ];
            rows.push((cpu, row), GFP_KERNEL)?;
        }
        Ok(Self(rows))
    }

    /// Writes a line of names, and a line for each CPU.
    pub(crate) fn write(&self, out: &mut dyn Write) -> fmt::Result {
        writeln!(out, "{}", Self::NAMES)?;
        for (cpu, row) in &self.0 {
            write!(out, "{cpu}")?;
            for count in row {
                write!(out, " {count}")?;
            }
            out.write_char('\n')?;
        }
        Ok(())
    }
}
