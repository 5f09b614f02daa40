// SPDX-License-Identifier: GPL-2.0

//! `losses`: a row for each place where events are missing.

use super::{made, row};
use crate::format::Loss;
use ctf::Clock;
use tables::{ColumnKind, Folder, TableId};

/// Columns after the place.
const COLUMNS: [(&str, ColumnKind); 3] = [
    ("duration_ns", ColumnKind::LONG),
    ("events", ColumnKind::LONG),
    ("packets", ColumnKind::LONG),
];

/// The table.
pub struct LossTable {
    /// The clock's 0, in nanoseconds since the epoch.
    zero: i64,
    table: TableId,
}

impl LossTable {
    /// For a trace with this clock.
    pub fn new(clock: Clock, folder: &mut Folder, begin: i64) -> tables::Result<Self> {
        let table = made(folder, "losses", COLUMNS, begin)?;
        let zero = super::epoch(&clock, 0);
        Ok(Self { zero, table })
    }

    /// Adds a row.
    pub fn loss(&self, loss: &Loss, folder: &mut Folder) -> tables::Result<()> {
        let mut row = row(
            folder,
            self.table,
            self.zero.saturating_add_unsigned(loss.ns),
        )?;
        row.integer(loss.cpu.into());
        row.integer(loss.until.saturating_sub(loss.ns));
        row.integer(loss.events);
        row.integer(loss.packets);
        Ok(())
    }
}
