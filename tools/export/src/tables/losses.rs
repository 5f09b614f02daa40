// SPDX-License-Identifier: GPL-2.0

//! `losses`: a row for each place where events are missing.

use super::made::{Made, CPU};
use crate::format::Loss;
use ctf::Clock;
use tables::{ColumnKind, Folder};

/// Columns after the place.
const COLUMNS: [(&str, ColumnKind); 3] = [
    ("duration_ns", ColumnKind::LONG),
    ("events", ColumnKind::LONG),
    ("packets", ColumnKind::LONG),
];

/// The table.
pub struct LossTable(Made);

impl LossTable {
    /// For a trace with this clock.
    pub fn new(clock: Clock, folder: &mut Folder, begin: i64) -> tables::Result<Option<Self>> {
        let columns = [CPU].into_iter().chain(COLUMNS);
        Ok(Made::new("losses", columns, clock, folder, begin)?.map(Self))
    }

    /// Adds a row.
    pub fn loss(&self, loss: &Loss, folder: &mut Folder) -> tables::Result<()> {
        let Self(table) = self;
        let mut row = table.row_at(folder, loss.ns)?;
        row.integer(loss.cpu.into());
        row.integer(loss.until.saturating_sub(loss.ns));
        row.integer(loss.events);
        row.integer(loss.packets);
        Ok(())
    }
}
