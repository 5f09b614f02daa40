// SPDX-License-Identifier: GPL-2.0

//! `interrupts`: a row for each handled interrupt.

use super::made::{Made, CPU};
use analysis::interrupts::{Interrupt, Interrupts};
use analysis::schedule::Schedule;
use analysis::{Catalogue, EventKey};
use std::collections::HashSet;
use tables::{ColumnKind, Folder};

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
pub struct InterruptTable(Made);

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
        let columns = [CPU].into_iter().chain(COLUMNS);
        let clock = catalogue.metadata().clock;
        let table = Made::new("interrupts", columns, clock, folder, begin)?;
        Ok(table.map(Self))
    }

    /// Adds an interrupt.
    pub fn interrupt(
        &self,
        interrupt: &Interrupt<'_>,
        schedule: &Schedule,
        folder: &mut Folder,
    ) -> tables::Result<()> {
        let Self(table) = self;
        let source = interrupt.source;
        let kind = if source.is_hard { "hard" } else { "soft" };
        let mut row = table.row(folder, interrupt.from)?;
        row.integer(schedule.number(interrupt.cpu).into());
        row.text(Some(kind.as_bytes()));
        row.integer(source.number as u64);
        row.text(Some(source.name.as_bytes()));
        row.integer(table.nanoseconds(interrupt.ticks));
        row.integer(table.nanoseconds(interrupt.own_ticks));
        Ok(())
    }
}
