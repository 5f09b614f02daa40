// SPDX-License-Identifier: GPL-2.0

//! `interrupts`: a row for each handled interrupt.

use super::{epoch, made, row};
use analysis::interrupts::{Interrupt, Interrupts};
use analysis::schedule::Schedule;
use analysis::{Catalogue, EventKey};
use ctf::Clock;
use std::collections::HashSet;
use tables::{ColumnKind, Folder, TableId};

/// Columns after the place.
const COLUMNS: [(&str, ColumnKind); 5] = [
    ("kind", ColumnKind::Text),
    ("number", ColumnKind::LONG),
    ("name", ColumnKind::Text),
    ("duration_ns", ColumnKind::LONG),
    // Time without the interrupts that were nested in this one.
    ("own_ns", ColumnKind::LONG),
];

/// The table.
pub struct InterruptTable {
    clock: Clock,
    table: TableId,
}

impl InterruptTable {
    /// For a trace, if the events of interrupts are chosen.
    pub fn new(
        catalogue: &Catalogue<'_>,
        chosen: &HashSet<EventKey>,
        folder: &mut Folder,
        begin: i64,
    ) -> tables::Result<Option<Self>> {
        let events = Interrupts::new(catalogue).events();
        if !events.iter().any(|key| chosen.contains(key)) {
            return Ok(None);
        }
        let table = made(folder, "interrupts", COLUMNS, begin)?;
        if !folder.wants(table) {
            return Ok(None);
        }
        Ok(Some(Self {
            clock: catalogue.metadata().clock,
            table,
        }))
    }

    /// Adds an interrupt.
    pub fn interrupt(
        &self,
        interrupt: &Interrupt<'_>,
        schedule: &Schedule,
        folder: &mut Folder,
    ) -> tables::Result<()> {
        let source = interrupt.source;
        let kind = if source.is_hard { "hard" } else { "soft" };
        let mut row = row(folder, self.table, epoch(&self.clock, interrupt.from))?;
        row.integer(schedule.number(interrupt.cpu).into());
        row.text(Some(kind.as_bytes()));
        row.integer(source.number as u64);
        row.text(Some(source.name.as_bytes()));
        row.integer(self.clock.nanoseconds(interrupt.ticks));
        row.integer(self.clock.nanoseconds(interrupt.own_ticks));
        Ok(())
    }
}
