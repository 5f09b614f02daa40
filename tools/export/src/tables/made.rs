// SPDX-License-Identifier: GPL-2.0

//! A table that rtrace makes from several events.

use super::{epoch, row};
use ctf::Clock;
use tables::{Column, ColumnKind, Folder, Row, TableId};

/// Column of a row's CPU.
pub const CPU: (&str, ColumnKind) = ("cpu", ColumnKind::INT);

/// Columns of a row's thread.
pub const THREAD: [(&str, ColumnKind); 3] = [
    ("tid", ColumnKind::INT),
    ("pid", ColumnKind::INT),
    ("comm", ColumnKind::Text),
];

/// A table made from several events.
pub struct Made {
    clock: Clock,
    table: TableId,
}

impl Made {
    /// Announces a table of a trace with this clock. The columns follow the time. If the table stays empty, it has a
    /// file for the day of `begin`. [`None`]: its rows are not wanted.
    pub fn new<'c>(
        name: &str,
        columns: impl IntoIterator<Item = (&'c str, ColumnKind)>,
        clock: Clock,
        folder: &mut Folder,
        begin: i64,
    ) -> tables::Result<Option<Self>> {
        let time = [("time", ColumnKind::Time), ("ns", ColumnKind::Clock)];
        let columns = time.into_iter().chain(columns);
        let columns: Vec<_> = columns
            .map(|(name, kind)| Column::new(name, kind))
            .collect();
        let table = folder.table(name, &columns);
        folder.open(table, begin)?;
        Ok(folder.wants(table).then_some(Self { clock, table }))
    }

    /// Begins a row with its time, in clock ticks.
    pub fn row<'f>(&self, folder: &'f mut Folder, ticks: u64) -> tables::Result<Row<'f>> {
        row(folder, self.table, epoch(&self.clock, ticks))
    }

    /// Begins a row with its time, in nanoseconds of the trace's clock.
    pub fn row_at<'f>(&self, folder: &'f mut Folder, ns: u64) -> tables::Result<Row<'f>> {
        let ns = epoch(&self.clock, 0).saturating_add_unsigned(ns);
        row(folder, self.table, ns)
    }

    /// A duration in nanoseconds.
    pub fn nanoseconds(&self, ticks: u64) -> u64 {
        self.clock.nanoseconds(ticks)
    }
}
