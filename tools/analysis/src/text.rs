// SPDX-License-Identifier: GPL-2.0

//! Parts of text that several answers share.

use std::fmt::{Display, Result, Write};
use terminal::{duration, HEADING};

/// Writes a table: a heading, and a line for each of the first `rows` of `items`.
pub fn table<T>(
    out: &mut String,
    heading: &str,
    items: &[T],
    rows: usize,
    line: impl Fn(&T) -> String,
) -> Result {
    writeln!(out, "\n{HEADING}{heading}{HEADING:#}")?;
    for item in items.iter().take(rows) {
        writeln!(out, "{}", line(item).trim_end())?;
    }
    Ok(())
}

/// Formats a time in nanoseconds. Returns a dash if it is not known.
pub fn or_dash(nanoseconds: Option<u64>) -> String {
    nanoseconds.map_or_else(|| "-".to_owned(), duration)
}

/// Formats a value. Returns a question mark if it is not known.
pub fn or_unknown(value: Option<impl Display>) -> String {
    value.map_or_else(|| "?".to_owned(), |value| value.to_string())
}

/// Writes the number of rows that a table of `all` rows does not show.
pub fn more(out: &mut String, all: usize, rows: usize, what: &str) -> Result {
    match all.saturating_sub(rows) {
        0 => Ok(()),
        left => writeln!(out, "{:>14}         more {what} (-n 0 shows all)", left),
    }
}

/// Formats a part in percent.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    format!("{:.1}%", part as f64 * 100.0 / whole as f64)
}
