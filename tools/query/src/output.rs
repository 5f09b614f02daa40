// SPDX-License-Identifier: GPL-2.0

//! The rows of an answer: as a table, CSV, JSON or Parquet.

use crate::engine::Engine;
use crate::schema::{FLAG, TIME, UNSIGNED};
use anyhow::Context;
use export::CsvRow;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rusqlite::types::ValueRef;
use rusqlite::{Rows, Statement};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use system::printing;
use tables::{Column, ColumnKind, Single};
use terminal::budget::{Budget, LeftOut, Size};
use terminal::{harmless_json, printable};

/// Format of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Aligned columns.
    Table(Size),
    /// Comma-separated values; the first line has the names of the columns.
    Csv,
    /// One object, which names its schema and has the rows as objects.
    Json(&'static str, Option<Budget>),
    /// A Parquet file.
    Parquet,
}

/// A column of an answer.
struct Answered {
    name: String,
    /// Type of the column, if it is a column of a table.
    declared: Option<String>,
}

impl Answered {
    fn is_declared(&self, as_type: &str) -> bool {
        self.declared.as_deref() == Some(as_type)
    }
}

impl Format {
    /// Whether the output is text.
    pub fn is_text(self) -> bool {
        self != Self::Parquet
    }

    /// Writes the answer to a query.
    pub fn write(self, engine: &Engine, sql: &str, out: &mut dyn Write) -> anyhow::Result<()> {
        let mut statement = engine.prepare(sql)?;
        let columns = answered(&statement);
        match self {
            Self::Table(Size::Rows(most)) => {
                table(&columns, &mut statement.raw_query(), most, out).map(drop)
            }
            Self::Table(Size::Tokens(budget)) => {
                bounded_table(&columns, &mut statement.raw_query(), budget, out)
            }
            Self::Csv => csv(&columns, &mut statement.raw_query(), out),
            Self::Json(schema, budget) => {
                json(&columns, &mut statement.raw_query(), (schema, budget), out)
            }
            Self::Parquet => {
                // Without what follows the first `;`: only comments do.
                let sql = statement.expanded_sql().context("the query is too long")?;
                drop(statement);
                parquet(engine, &sql, &columns, out)
            }
        }
    }
}

/// Returns the columns of an answer. All names differ.
fn answered(statement: &Statement<'_>) -> Vec<Answered> {
    let mut columns: Vec<Answered> = Vec::new();
    for column in statement.columns() {
        let numbered = (2..).map(|number| format!("{}_{number}", column.name()));
        let mut names = [column.name().to_owned()].into_iter().chain(numbered);
        let is_taken = |name: &str| {
            columns
                .iter()
                .any(|column| column.name.eq_ignore_ascii_case(name))
        };
        let name = names.find(|name| !is_taken(name));
        columns.push(Answered {
            name: name.unwrap_or_default(),
            declared: column.decl_type().map(str::to_owned),
        });
    }
    columns
}

/// Returns a value as text; none if the value is empty.
fn text(column: &Answered, value: ValueRef<'_>) -> Option<String> {
    Some(match value {
        ValueRef::Null => return None,
        ValueRef::Integer(number) if column.is_declared(FLAG) => (number != 0).to_string(),
        // SQLite reads this form as the same number.
        ValueRef::Integer(number @ ..0) if column.is_declared(UNSIGNED) => format!("{number:#x}"),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => utf8(bytes),
    })
}

/// Returns a text of SQLite. Texts of a trace are UTF-8; an expression may have other bytes.
fn utf8(bytes: &[u8]) -> String {
    let text = std::str::from_utf8(bytes).map(str::to_owned);
    text.unwrap_or_else(|_| printing::text(bytes).into_owned())
}

/// Number of rows whose cells set the widths of a table's columns. Cells of later rows may be wider.
const MEASURED: usize = 1000;

/// Writes at most `most` rows. Returns the number of written rows, and whether it has read one more.
fn table(
    columns: &[Answered],
    rows: &mut Rows<'_>,
    most: usize,
    out: &mut dyn Write,
) -> anyhow::Result<(usize, bool)> {
    let mut lines = vec![Vec::new()];
    let mut is_right = vec![true; columns.len()];
    let names = columns.iter().map(|column| printable(&column.name));
    lines[0].extend(names);
    let mut widths = Vec::new();
    let mut written = 0;
    while let Some(row) = rows.next()? {
        if written == most {
            print(&mut lines, &mut widths, &is_right, out)?;
            writeln!(out, "... more rows (-n 0 shows all)")?;
            return Ok((written, true));
        }
        written += 1;
        let mut line = Vec::new();
        for (place, column) in columns.iter().enumerate() {
            let value = row.get_ref(place)?;
            if !matches!(
                value,
                ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_)
            ) {
                is_right[place] = false;
            }
            let text = match value {
                ValueRef::Real(number) if number.abs() < 1e15 => Some(format!("{number:.3}")),
                value => text(column, value),
            };
            line.push(text.map_or("-".to_owned(), |text| printable(&text)));
        }
        lines.push(line);
        if lines.len() > MEASURED {
            print(&mut lines, &mut widths, &is_right, out)?;
        }
    }
    print(&mut lines, &mut widths, &is_right, out)?;
    Ok((written, false))
}

/// Writes the rows that fit into a budget, and says how many are left out.
fn bounded_table(
    columns: &[Answered],
    rows: &mut Rows<'_>,
    budget: Budget,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    // A row has a byte for the end of its line, and at least one for each column.
    let most = budget.bytes() / (columns.len() + 1);
    let mut text = Vec::new();
    let (written, is_cut) = table(columns, rows, most, &mut text)?;
    let mut length = 0;
    let lines = text
        .split_inclusive(|byte| *byte == b'\n')
        .take(written + 1);
    let lines = lines.take_while(|line| {
        length += line.len();
        length <= budget.bytes()
    });
    let mut shown: usize = 0;
    for line in lines {
        out.write_all(line)?;
        shown += 1;
    }
    // The first line has the names of the columns.
    let mut left = written - shown.saturating_sub(1) + usize::from(is_cut);
    while rows.next()?.is_some() {
        left += 1;
    }
    if left > 0 {
        writeln!(out, "{}", LeftOut::rows(left as u64))?;
    }
    Ok(())
}

/// Prints lines. The first lines set the widths of the columns.
fn print(
    lines: &mut Vec<Vec<String>>,
    widths: &mut Vec<usize>,
    is_right: &[bool],
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let width = |place: usize| {
        let cells = lines.iter().map(|line| line[place].chars().count());
        cells.max().unwrap_or(0)
    };
    if widths.is_empty() {
        *widths = (0..is_right.len()).map(width).collect();
    }
    for line in lines.drain(..) {
        let cells = line.iter().zip(&*widths).zip(is_right);
        let cells = cells.map(|((cell, width), is_right)| match is_right {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn csv(columns: &[Answered], rows: &mut Rows<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut cells = CsvRow::default();
    let mut names = columns.iter().map(|column| &column.name);
    names.try_for_each(|name| cells.cell(name))?;
    cells.end(out)?;
    while let Some(row) = rows.next()? {
        for (place, column) in columns.iter().enumerate() {
            cells.cell(text(column, row.get_ref(place)?).unwrap_or_default())?;
        }
        cells.end(out)?;
    }
    Ok(())
}

/// A row as a JSON object, in the order of the columns.
struct Object<'a>(Vec<(&'a str, Json)>);

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// The answer to a query, as JSON.
#[derive(JsonSchema)]
#[schemars(rename = "Rows")]
#[expect(
    dead_code,
    reason = "the field only describes what an answer is written as"
)]
pub struct QueryAnswer {
    /// The rows, with the names of the columns.
    rows: Vec<BTreeMap<String, Cell>>,
}

/// A value of a row.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(
    dead_code,
    reason = "the variants only describe what a value is written as"
)]
enum Cell {
    Null,
    Flag(bool),
    Signed(i64),
    Unsigned(u64),
    Real(f64),
    Text(String),
}

fn json(
    columns: &[Answered],
    rows: &mut Rows<'_>,
    (schema, budget): (&str, Option<Budget>),
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut room = budget.map_or(usize::MAX, Budget::bytes);
    let mut left = 0;
    let mut before = "\n  ";
    write!(out, "{{\"schema\": \"{schema}\", \"rows\": [")?;
    while let Some(row) = rows.next()? {
        if left > 0 {
            left += 1;
            continue;
        }
        let mut object = Object(Vec::new());
        for (place, column) in columns.iter().enumerate() {
            let value = match row.get_ref(place)? {
                ValueRef::Null => Json::Null,
                ValueRef::Integer(number) if column.is_declared(FLAG) => (number != 0).into(),
                ValueRef::Integer(number) if column.is_declared(UNSIGNED) => (number as u64).into(),
                ValueRef::Integer(number) => number.into(),
                ValueRef::Real(number) => number.into(),
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => utf8(bytes).into(),
            };
            object.0.push((&column.name, value));
        }
        let object = harmless_json(serde_json::to_string(&object)?);
        match room.checked_sub(before.len() + object.len()) {
            Some(rest) => room = rest,
            None => {
                left = 1;
                continue;
            }
        }
        write!(out, "{before}{object}")?;
        before = ",\n  ";
    }
    if before.starts_with(',') {
        writeln!(out)?;
    }
    match left {
        0 => writeln!(out, "]}}")?,
        left => {
            let left = serde_json::to_string(&LeftOut::rows(left))?;
            writeln!(out, "], \"left_out\": {left}}}")?;
        }
    }
    Ok(())
}

/// Writes a Parquet file. The type of a column depends on all its values, so the rows are first stored in a
/// table of SQLite.
fn parquet(
    engine: &Engine,
    sql: &str,
    columns: &[Answered],
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let connection = &engine.connection;
    let numbered = (0..columns.len()).map(|number| format!("c{number}"));
    let names = { numbered }.collect::<Vec<_>>().join(", ");
    let sql = sql.trim_end().trim_end_matches(';');
    // The line end ends a comment of the query.
    connection.execute_batch(&format!(
        "CREATE TEMP TABLE answer AS WITH answer({names}) AS ({sql}\n) SELECT * FROM answer"
    ))?;
    let types = (0..columns.len())
        .map(|n| format!("max(typeof(c{n}) = 'real') + 2 * max(typeof(c{n}) IN ('text', 'blob'))"));
    let types = { types }.collect::<Vec<_>>().join(", ");
    let kinds = connection.query_row(&format!("SELECT {types} FROM answer"), [], |row| {
        let kinds = columns.iter().enumerate();
        kinds
            .map(|(place, column)| {
                let kind = row.get::<_, Option<i64>>(place)?;
                Ok(match (column.declared.as_deref(), kind.unwrap_or(0)) {
                    (Some(TIME), _) => ColumnKind::Time,
                    (Some(FLAG), 0) => ColumnKind::Flag,
                    (Some(UNSIGNED), 0) => ColumnKind::Integer {
                        bits: 64,
                        signed: false,
                    },
                    (_, 0) => ColumnKind::LONG,
                    (_, 1) => ColumnKind::Real,
                    _ => ColumnKind::Text,
                })
            })
            .collect::<rusqlite::Result<Vec<_>>>()
    })?;
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("answer.parquet");
    let typed: Vec<_> = columns
        .iter()
        .zip(&kinds)
        .map(|(column, kind)| Column::new(&column.name, *kind))
        .collect();
    let mut file = Single::create(&path, &typed)?;
    let mut statement = connection.prepare("SELECT * FROM answer")?;
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        let mut to = file.row()?;
        for (place, (column, kind)) in columns.iter().zip(&kinds).enumerate() {
            let value = row.get_ref(place)?;
            match (kind, value) {
                (_, ValueRef::Null) => to.null(),
                (ColumnKind::Time, value) => {
                    to.number(text(column, value).and_then(|time| microseconds(&time)))
                }
                (ColumnKind::Real, ValueRef::Integer(number)) => to.real(number as f64),
                (_, ValueRef::Integer(number)) if *kind != ColumnKind::Text => {
                    to.number(Some(number))
                }
                (_, ValueRef::Real(number)) if *kind != ColumnKind::Text => to.real(number),
                (_, value) => to.text(text(column, value).as_ref().map(String::as_bytes)),
            }
        }
    }
    file.finish()?;
    io::copy(&mut File::open(&path)?, out)?;
    Ok(())
}

/// Converts a time from text to microseconds since the epoch.
fn microseconds(time: &str) -> Option<i64> {
    let time: DateTime = time.parse().ok()?;
    let time = time.to_zoned(TimeZone::UTC).ok()?;
    Some(time.timestamp().as_microsecond())
}
