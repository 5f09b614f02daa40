// SPDX-License-Identifier: GPL-2.0

//! The tables of several traces: a table has the columns that any of the traces gives it.

use anyhow::Context;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::rc::Rc;
use store::Trace;
use tables::{Cell, Column, ColumnKind, Rows};

/// Columns of every table, after its own: the machine, the day, and the directory of the trace.
pub const PLACE: [&str; 3] = ["host", "date", "trace"];

/// Tables by their names in lower case: SQL ignores case.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    pub tables: BTreeMap<String, Table>,
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Name of the table.
    pub name: String,
    /// Columns of the table.
    pub columns: Vec<Column>,
}

impl Schema {
    /// Adds the tables of a trace. Returns their names, in lower case.
    pub fn add(&mut self, dir: &Path, trace: &Trace) -> anyhow::Result<BTreeSet<String>> {
        let announced = Announced::default();
        let announce = export::announce(dir, trace, Box::new(announced.clone()));
        announce.with_context(|| dir.display().to_string())?;
        let mut names = BTreeSet::new();
        for (name, columns) in announced.0.take() {
            let key = name.to_lowercase();
            names.insert(key.clone());
            let table = self.tables.entry(key).or_insert_with(|| Table {
                name,
                columns: Vec::new(),
            });
            for column in columns {
                let mut known = table.columns.iter();
                if !known.any(|known| known.name.eq_ignore_ascii_case(&column.name)) {
                    table.columns.push(column);
                }
            }
        }
        Ok(names)
    }
}

impl Table {
    /// Returns the SQL statement that creates the table.
    pub fn create(&self) -> String {
        let own = self.columns.iter();
        let own = own.map(|column| format!("{} {}", quoted(&column.name), declared(column.kind)));
        let place = PLACE.iter().map(|name| format!("{name} TEXT"));
        let columns: Vec<_> = own.chain(place).collect();
        let name = quoted(&self.name);
        format!("CREATE TABLE {name} ({})", columns.join(", "))
    }

    /// Returns the names of all columns, with [`PLACE`].
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let own = self.columns.iter().map(|column| column.name.as_str());
        own.chain(PLACE)
    }
}

/// Type of a column whose cells are 0 or 1.
pub const FLAG: &str = "BOOLEAN";
/// Type of a column of times.
pub const TIME: &str = "TIMESTAMP";

/// Type of a column of unsigned 64-bit integers. SQLite's integers are signed, so it stores the same 64 bits: values
/// from 2^63 are negative there, and are shown in hexadecimal.
pub const UNSIGNED: &str = "UNSIGNED BIG INT";

/// Returns the declared type of a column in SQLite.
fn declared(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Time => TIME,
        ColumnKind::Flag => FLAG,
        ColumnKind::Integer {
            bits: 64..,
            signed: false,
        } => UNSIGNED,
        ColumnKind::Clock | ColumnKind::Integer { .. } => "INTEGER",
        ColumnKind::Real => "REAL",
        ColumnKind::Text | ColumnKind::List { .. } => "TEXT",
    }
}

/// Quotes a name for SQL.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The tables that a trace announces.
#[derive(Clone, Default)]
struct Announced(Rc<RefCell<Tables>>);

type Tables = Vec<(String, Vec<Column>)>;

impl Rows for Announced {
    fn table(&mut self, name: &str, columns: &[Column]) -> Option<Vec<bool>> {
        let table = (name.to_owned(), columns.to_vec());
        self.0.borrow_mut().push(table);
        None
    }

    fn row(&mut self, _table: usize, _ns: i64, _cells: &[Cell]) -> io::Result<()> {
        Ok(())
    }
}
