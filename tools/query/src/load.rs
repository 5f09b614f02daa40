// SPDX-License-Identifier: GPL-2.0

//! Fills the tables that a query names, with one pass over each trace.
//!
//! One thread reads the trace, another one adds the rows. Between them are at most [`BATCHES`] batches.

use crate::interruption::Interruption;
use crate::schema::{quoted, PLACE};
use anyhow::Context;
use export::Exported;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Statement, ToSql};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use store::Trace;
use system::printing::text;
use tables::{Cell, Column, ColumnKind, Rows};
use terminal::progress;

/// Columns that the query names, by table. All names are in lower case.
pub type Needed = BTreeMap<String, BTreeSet<String>>;

/// Number of rows in a batch, and of batches in the channel.
const ROWS: usize = 1024;
const BATCHES: usize = 4;

/// Message of the thread that reads the trace.
enum Found {
    /// A table that the query names, with the needed columns.
    Table { name: String, columns: Vec<Column> },
    /// Rows of these tables.
    Batch(Batch),
}

#[derive(Default)]
struct Batch {
    /// Number of the table, time, and number of cells.
    rows: Vec<(usize, i64, usize)>,
    /// The cells of all rows.
    cells: Vec<Cell>,
}

/// Adds the rows of a trace to the tables of a connection.
pub fn load(
    connection: &Connection,
    needed: &Needed,
    dir: &Path,
    trace: &Trace,
    interruption: &Interruption,
) -> anyhow::Result<Exported> {
    let bar = progress::reading(trace.bytes)?;
    let (to, found) = sync_channel(BATCHES);
    let (read, added) = std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let progress = |bytes| {
                bar.inc(bytes);
                interruption.check()
            };
            export::read(
                dir,
                trace,
                Box::new(Sender::new(to, needed.clone())),
                progress,
            )
        });
        let added = add(
            connection,
            needed,
            dir,
            export::host(&trace.metadata),
            found,
        );
        let read = reading.join();
        (read, added)
    });
    bar.finish_and_clear();
    // The reading thread has then seen only that the channel of rows is closed.
    added.context("cannot store the rows")?;
    read.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Sends rows to the thread that adds them.
struct Sender {
    to: SyncSender<Found>,
    needed: Needed,
    /// By number of an announced table: the needed columns, and the table's number among the needed ones.
    tables: Vec<Option<(Vec<bool>, usize)>>,
    wanted: usize,
    batch: Batch,
}

impl Sender {
    fn new(to: SyncSender<Found>, needed: Needed) -> Self {
        Self {
            to,
            needed,
            tables: Vec::new(),
            wanted: 0,
            batch: Batch::default(),
        }
    }

    fn send(&mut self) -> io::Result<()> {
        let batch = std::mem::take(&mut self.batch);
        let sent = self.to.send(Found::Batch(batch));
        sent.map_err(|_| io::Error::other("the rows are not wanted"))
    }
}

impl Rows for Sender {
    fn table(&mut self, name: &str, columns: &[Column]) -> Option<Vec<bool>> {
        let needed = self.needed.get(&name.to_lowercase());
        let wanted = needed.map(|needed| {
            let names = columns.iter().map(|column| column.name.to_lowercase());
            names.map(|name| needed.contains(&name)).collect::<Vec<_>>()
        });
        if let Some(wanted) = &wanted {
            let columns = columns.iter().zip(wanted);
            let columns = columns.filter(|(_, wanted)| **wanted);
            // If the other thread has failed, sending the first batch shows it.
            let _ = self.to.send(Found::Table {
                name: name.to_owned(),
                columns: columns.map(|(column, _)| column.clone()).collect(),
            });
            self.wanted += 1;
        }
        let table = wanted.clone().map(|wanted| (wanted, self.wanted - 1));
        self.tables.push(table);
        wanted
    }

    fn row(&mut self, table: usize, ns: i64, cells: &[Cell]) -> io::Result<()> {
        let Some((wanted, number)) = &self.tables[table] else {
            return Ok(());
        };
        let before = self.batch.cells.len();
        let cells = cells.iter().zip(wanted);
        let cells = cells.filter(|(_, wanted)| **wanted);
        self.batch.cells.extend(cells.map(|(cell, _)| cell.clone()));
        let count = self.batch.cells.len() - before;
        self.batch.rows.push((*number, ns, count));
        match self.batch.rows.len() {
            ROWS => self.send(),
            _ => Ok(()),
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let _ = self.send();
    }
}

/// A table that rows are added to.
struct Table<'c> {
    insert: Statement<'c>,
    kinds: Vec<ColumnKind>,
    /// Whether each of the columns [`PLACE`] is needed.
    place: [bool; 3],
}

/// Adds the rows that it receives, as one transaction.
fn add(
    connection: &Connection,
    needed: &Needed,
    dir: &Path,
    host: &str,
    found: Receiver<Found>,
) -> rusqlite::Result<()> {
    let mut tables: Vec<Table<'_>> = Vec::new();
    let mut days = Days::default();
    let dir = text(dir.as_os_str().as_bytes());
    connection.execute_batch("BEGIN")?;
    for found in found {
        let batch = match found {
            Found::Table { name, columns } => {
                tables.push(Table::new(connection, needed, &name, &columns)?);
                continue;
            }
            Found::Batch(batch) => batch,
        };
        let mut cells = batch.cells.into_iter();
        for (table, ns, count) in batch.rows {
            let table = &mut tables[table];
            let mut number = 0;
            let mut bind = |value: &dyn ToSql| {
                number += 1;
                table.insert.raw_bind_parameter(number, value)
            };
            for (cell, kind) in cells.by_ref().take(count).zip(&table.kinds) {
                match kind {
                    ColumnKind::Time => bind(&days.time(ns))?,
                    _ => bind(&Stored(&cell))?,
                }
            }
            let place: [&dyn ToSql; 3] = [&host, &days.date(ns), &dir];
            for (value, needed) in place.into_iter().zip(table.place) {
                if needed {
                    bind(value)?;
                }
            }
            table.insert.raw_execute()?;
        }
    }
    connection.execute_batch("COMMIT")
}

impl<'c> Table<'c> {
    /// Creates the table of this name, with the columns that the query names.
    fn new(
        connection: &'c Connection,
        needed: &Needed,
        name: &str,
        columns: &[Column],
    ) -> rusqlite::Result<Self> {
        let needed = needed.get(&name.to_lowercase());
        let place = PLACE.map(|column| needed.is_some_and(|needed| needed.contains(column)));
        let own = columns.iter().map(|column| quoted(&column.name));
        let places = PLACE.into_iter().zip(place);
        let places = places.filter(|(_, needed)| *needed);
        let names: Vec<_> = own.chain(places.map(|(name, _)| name.to_owned())).collect();
        let table = quoted(name);
        // A query that counts rows names no column.
        let sql = match names.as_slice() {
            [] => format!("INSERT INTO {table} DEFAULT VALUES"),
            names => format!(
                "INSERT INTO {table} ({}) VALUES ({})",
                names.join(", "),
                vec!["?"; names.len()].join(", ")
            ),
        };
        Ok(Self {
            insert: connection.prepare(&sql)?,
            kinds: columns.iter().map(|column| column.kind).collect(),
            place,
        })
    }
}

/// A cell as SQLite stores it.
struct Stored<'a>(&'a Cell);

impl ToSql for Stored<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Cell::Empty => ToSqlOutput::Owned(Value::Null),
            // The low 64 bits, for a column `schema::UNSIGNED`.
            Cell::Integer(number) => ToSqlOutput::Owned(Value::Integer(*number as i64)),
            Cell::Real(number) => ToSqlOutput::Owned(Value::Real(*number)),
            Cell::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Cell::List(items) => {
                let items: Vec<_> = items.iter().map(i128::to_string).collect();
                ToSqlOutput::Owned(Value::Text(format!("[{}]", items.join(","))))
            }
        })
    }
}

/// Nanoseconds in a day.
const DAY: i64 = 86_400_000_000_000;

/// Times as texts. The date of the last one is kept.
#[derive(Default)]
struct Days {
    day: Option<i64>,
    date: String,
    time: String,
}

impl Days {
    /// Returns the date of a time in nanoseconds since the epoch: `YYYY-MM-DD`.
    fn date(&mut self, ns: i64) -> &str {
        let day = ns.div_euclid(DAY);
        if self.day.replace(day) != Some(day) {
            self.date = tables::date(ns).to_string();
        }
        &self.date
    }

    /// Returns the time as text: `YYYY-MM-DD HH:MM:SS.ffffff`.
    fn time(&mut self, ns: i64) -> &str {
        let microseconds = ns.rem_euclid(DAY) / 1000;
        let (seconds, fraction) = (microseconds / 1_000_000, microseconds % 1_000_000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        self.date(ns);
        self.time.clear();
        // Writing to a String cannot fail.
        let _ = write!(
            self.time,
            "{} {hour:02}:{minute:02}:{second:02}.{fraction:06}",
            self.date
        );
        &self.time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_texts() {
        let mut days = Days::default();
        let ns = 1_700_000_001_000_020_999;
        assert_eq!(days.time(ns), "2023-11-14 22:13:21.000020");
        assert_eq!(days.time(ns + DAY), "2023-11-15 22:13:21.000020");
        assert_eq!(days.time(-1), "1969-12-31 23:59:59.999999");
        assert_eq!(days.date(0), "1970-01-01");
    }
}
