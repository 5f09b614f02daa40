// SPDX-License-Identifier: GPL-2.0

//! Tables and histograms of maps: of those that were recorded with a trace (`--maps`), and of live ones.

use super::{Analysis, Answer, Missing};
use ctf::Metadata;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::path::Path;
use store::maps::{self, MapKey, MapRow, MapTable, Unpaired, STACK, USER_STACK};
use symbols::Symbols;
use terminal::{printable, say};

/// Characters of the longest bar of a histogram.
const BAR: usize = 40;

/// The line between two call stacks of a row.
const BETWEEN_STACKS: &str = "--";

/// The maps that were recorded with a trace.
pub struct Maps(Vec<MapTable>);

impl Maps {
    /// Reads the maps of the trace in `dir`. If it has none, returns an error.
    pub fn new(dir: &Path, metadata: &Metadata) -> Result<Self, Missing> {
        let mut tables = maps::read(dir, metadata.uuid).unwrap_or_else(|error| {
            say(error);
            Vec::new()
        });
        let has_stacks = |table: &MapTable| table.user_stacks().next().is_some();
        if tables.iter().any(has_stacks) {
            Symbols::of(dir, metadata).name_maps(&mut tables);
        }
        tables.iter_mut().for_each(|table| sort(table, None));
        match tables.is_empty() {
            false => Ok(Self(tables)),
            true => Err(Missing {
                option: "--maps",
                events: "maps",
                record: "--map MAP".into(),
            }),
        }
    }
}

impl Analysis for Maps {
    fn answer(self: Box<Self>, _ticks: u64) -> Box<dyn Answer> {
        self
    }
}

impl Answer for Maps {
    fn name(&self) -> &'static str {
        "maps"
    }

    fn json(&self) -> serde_json::Result<Json> {
        serde_json::to_value(self.0.iter().map(MapObject::new).collect::<Vec<_>>())
    }

    fn text(&self, out: &mut String, rows: usize) -> fmt::Result {
        for table in &self.0 {
            writeln!(out, "\nmap {}", printable(&table.line))?;
            write(table, rows, out)?;
            for warning in warnings(table) {
                writeln!(out, "{warning}")?;
            }
        }
        Ok(())
    }
}

/// Sorts the rows by a column, the largest number first, or by a key. By default by the first column beside the count,
/// if there is one. The rows of a histogram stay together.
pub fn sort(table: &mut MapTable, by: Option<&str>) {
    let default = usize::from(table.columns.len() > 1);
    let key = table.keys.iter().position(|key| Some(key.as_str()) == by);
    if let Some(key) = key {
        return table.rows.sort_by(|a, b| {
            let of = |row: &MapRow| (row.keys[key].clone(), row.keys.clone(), row.bucket);
            of(a).cmp(&of(b))
        });
    }
    let column = table
        .columns
        .iter()
        .position(|column| Some(column.as_str()) == by);
    let column = column.unwrap_or(default);
    let is_extreme = ["min(", "max("]
        .iter()
        .any(|kind| table.columns[column].starts_with(kind));
    let mut numbers: BTreeMap<Vec<MapKey>, i128> = BTreeMap::new();
    for row in &table.rows {
        let number = row.numbers[column];
        let all = numbers.entry(row.keys.clone());
        let all = all.and_modify(|all| {
            *all = match is_extreme {
                true => number.max(*all),
                false => number + *all,
            }
        });
        all.or_insert(number);
    }
    let place = |row: &MapRow| (numbers.get(&row.keys).copied(), row.keys.clone());
    table.rows.sort_by(|a, b| {
        let ((one, keys), (other, others)) = (place(a), place(b));
        let order = other.cmp(&one).then_with(|| keys.cmp(&others));
        order.then(a.bucket.cmp(&b.bucket))
    });
}

/// Returns what a reader of the table must know: events that are not in it.
pub fn warnings(table: &MapTable) -> Vec<String> {
    let overflow = table.overflow.first().copied().unwrap_or(0);
    let of_unpaired = |count: fn(&Unpaired) -> u64| table.unpaired.as_ref().map_or(0, count);
    let counters = [
        (overflow, "events had no room and are not in the table: choose a larger size"),
        (table.lacking.into(), "events lacked a value and are not in the table"),
        (
            of_unpaired(|unpaired| unpaired.unmatched).into(),
            "ends had no begin: they are not in the table (unmatched)",
        ),
        (
            of_unpaired(|unpaired| unpaired.repeated).into(),
            "begins were followed by another begin, not by their end: their durations are missing (repeated)",
        ),
        (
            of_unpaired(|unpaired| unpaired.dropped).into(),
            "begins had no room: their durations are missing (dropped)",
        ),
        (
            table.stackless.unwrap_or(0).into(),
            "call stacks had no room: their events are not in the table; choose a larger size",
        ),
    ];
    let not_zero = counters.into_iter().filter(|(count, _)| *count != 0);
    not_zero
        .map(|(count, what)| format!("{count} {what}"))
        .collect()
}

/// The table of a map, for JSON.
#[derive(Debug, JsonSchema, Serialize)]
pub struct MapObject {
    /// Name of the map.
    map: String,
    /// Names of the keys.
    keys: Vec<String>,
    /// Names of the numbers of each row. The first is `count`.
    columns: Vec<String>,
    /// Rows with keys and numbers by their names; the row of a bucket of a histogram also has `from` and `to`.
    rows: Vec<BTreeMap<String, Cell>>,
    /// The numbers of the updates for which the map had no room.
    overflow: BTreeMap<String, Cell>,
    /// Number of events that lacked a value.
    lacking: u64,
    /// Begins and ends without the other, if the map measures durations: ends without a begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    unmatched: Option<u64>,
    /// Begins that replaced another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    repeated: Option<u64>,
    /// Begins that found no room.
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped: Option<u64>,
    /// Number of events whose call stack found no room, if a key is a call stack.
    #[serde(skip_serializing_if = "Option::is_none")]
    stackless: Option<u64>,
    /// Duration of the counting, for `rtrace count`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// A key or number of a row.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(untagged)]
enum Cell {
    Unsigned(u64),
    Signed(i64),
    Text(String),
}

impl Cell {
    /// A number that is at least i64::MIN and at most u64::MAX.
    fn number(number: i128) -> Self {
        match u64::try_from(number) {
            Ok(number) => Self::Unsigned(number),
            Err(_) => Self::Signed(number as i64),
        }
    }
}

impl MapObject {
    /// Creates the object of a table.
    pub fn new(table: &MapTable) -> Self {
        let numbers = |numbers: &[i128]| {
            let named = table.columns.iter().zip(numbers);
            let named = named.map(|(name, number)| (name.clone(), Cell::number(*number)));
            named.collect::<BTreeMap<_, _>>()
        };
        let rows = table.rows.iter().map(|row| {
            let mut cells = BTreeMap::new();
            for (name, key) in table.keys.iter().zip(&row.keys) {
                let cell = match key {
                    MapKey::Number(number) => Cell::number(*number),
                    MapKey::Text(_) | MapKey::UserStack(_) => Cell::Text(key.to_string()),
                };
                cells.insert(name.clone(), cell);
            }
            if let Some((first, last)) = row.bucket {
                cells.insert("from".to_owned(), Cell::number(first));
                cells.insert("to".to_owned(), Cell::number(last));
            }
            cells.extend(numbers(&row.numbers));
            cells
        });
        let unpaired = table.unpaired.as_ref();
        Self {
            map: table.name.clone(),
            keys: table.keys.clone(),
            columns: table.columns.clone(),
            rows: rows.collect(),
            overflow: numbers(&table.overflow),
            lacking: table.lacking,
            unmatched: unpaired.map(|unpaired| unpaired.unmatched),
            repeated: unpaired.map(|unpaired| unpaired.repeated),
            dropped: unpaired.map(|unpaired| unpaired.dropped),
            stackless: table.stackless,
            seconds: None,
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }
}

/// Writes the table as text: a table, or a histogram for each key.
pub fn write(table: &MapTable, rows: usize, out: &mut String) -> fmt::Result {
    if let Some(value) = &table.hist {
        return histograms(table, value, rows, out);
    }
    // Call stacks follow their row, a place a line.
    let is_stack = |name: &String| name == STACK || name == USER_STACK;
    let names = table.keys.iter().filter(|name| !is_stack(name));
    let heading = table.columns.iter().chain(names).cloned().collect();
    let rows_shown = table.rows.iter().take(rows);
    let keys_of = |row: &MapRow, of_stacks: bool| -> Vec<String> {
        let keys = table.keys.iter().zip(&row.keys);
        let keys = keys.filter(|(name, _)| is_stack(name) == of_stacks);
        keys.map(|(_, key)| key_text(key)).collect()
    };
    let lines = rows_shown.clone().map(|row| {
        let keys = keys_of(row, false);
        let numbers = row.numbers.iter().map(i128::to_string);
        numbers.chain(keys).collect()
    });
    let lines: Vec<Vec<String>> = [heading].into_iter().chain(lines).collect();
    let mut text = String::new();
    columns(&lines, table.columns.len(), &mut text)?;
    let stacks = [Vec::new()].into_iter();
    let stacks = stacks.chain(rows_shown.map(|row| keys_of(row, true)));
    for (line, stacks) in text.lines().zip(stacks) {
        writeln!(out, "{line}")?;
        for (at, stack) in stacks.iter().enumerate() {
            if at > 0 {
                writeln!(out, "    {BETWEEN_STACKS}")?;
            }
            for place in stack.split(';') {
                writeln!(out, "    {place}")?;
            }
        }
    }
    more(table.rows.len(), rows, out)
}

fn key_text(key: &MapKey) -> String {
    printable(&key.to_string())
}

/// Writes lines of cells, of which the first `right` are aligned at the right.
fn columns(lines: &[Vec<String>], right: usize, out: &mut String) -> fmt::Result {
    let count = lines.first().map_or(0, Vec::len);
    let widths: Vec<_> = (0..count)
        .map(|at| lines.iter().map(|line| line[at].chars().count()).max())
        .collect();
    for line in lines {
        let mut text = String::new();
        for (at, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let width = width.unwrap_or(0);
            match at < right {
                true => write!(text, "{cell:>width$}  ")?,
                false => write!(text, "{cell:<width$}  ")?,
            }
        }
        writeln!(out, "{}", text.trim_end())?;
    }
    Ok(())
}

fn more(all: usize, rows: usize, out: &mut String) -> fmt::Result {
    match all.saturating_sub(rows) {
        0 => Ok(()),
        left => writeln!(out, "and {left} more rows (-n 0 shows all)"),
    }
}

/// Writes a histogram for each key, those with the largest counts first.
fn histograms(table: &MapTable, value: &str, rows: usize, out: &mut String) -> fmt::Result {
    let mut by_key: BTreeMap<_, BTreeMap<(i128, i128), &MapRow>> = BTreeMap::new();
    for row in &table.rows {
        let buckets = by_key.entry(&row.keys).or_default();
        buckets.insert(row.bucket.unwrap_or_default(), row);
    }
    let total = |buckets: &BTreeMap<_, &MapRow>| -> i128 {
        buckets.values().map(|row| row.numbers[0]).sum()
    };
    // In the order of the rows: a key comes where its first row is.
    let mut sorted = Vec::new();
    for row in &table.rows {
        sorted.extend(by_key.remove_entry(&&row.keys));
    }
    for (keys, buckets) in sorted.iter().take(rows) {
        let names = table.keys.iter().zip(keys.iter());
        let names = names.map(|(name, key)| format!("{name} {}, ", key_text(key)));
        let names: String = names.collect();
        writeln!(out, "\n{names}{} events by {value}", total(buckets))?;
        let largest = buckets.values().map(|row| row.numbers[0]).max();
        let lines: Vec<_> = buckets
            .iter()
            .map(|((first, last), row)| {
                let length = row.numbers[0] * BAR as i128 / largest.unwrap_or(1).max(1);
                let range = match first == last {
                    true => first.to_string(),
                    false => format!("{}..{}", first.min(last), first.max(last)),
                };
                let numbers = row.numbers.iter().map(i128::to_string);
                let bar = "#".repeat(usize::try_from(length).unwrap_or(0).max(1));
                let cells = [range].into_iter().chain(numbers);
                cells.chain([bar]).collect::<Vec<_>>()
            })
            .collect();
        columns(&lines, 1 + table.columns.len(), out)?;
    }
    more(sorted.len(), rows, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(table: &MapTable) -> Json {
        serde_json::to_value(MapObject::new(table)).unwrap()
    }

    fn tables() -> Vec<MapTable> {
        let text = "\
map bytes e by comm,cpu sum(n) max(n)
overflow 3 5 5
lacking 2
comm cpu count sum(n) max(n)
\"b\" 0 9 10 7
\"a\" 1 4 30 8

map sizes e by comm hist(n)
overflow 0
lacking 0
comm n count
\"a\" 8..8 7
\"b\" 1..1 5
\"b\" 16..17 4

";
        maps::parse(text).unwrap()
    }

    #[test]
    fn stacks_follow_their_rows() {
        let text = "map m e by comm,kstack\noverflow 0\nlacking 0\nstackless 2\ncomm kstack count\n\"a\" f+0x2a;g 12\n\"b\" - 3\n";
        let tables = maps::parse(text).unwrap();
        let mut text = String::new();
        write(&tables[0], 0, &mut text).unwrap();
        let all = "count  comm\nand 2 more rows (-n 0 shows all)\n";
        assert_eq!(text, all);
        let mut text = String::new();
        write(&tables[0], 9, &mut text).unwrap();
        let all = "count  comm\n   12  a\n    f+0x2a\n    g\n    3  b\n    -\n";
        assert_eq!(text, all);
        assert_eq!(warnings(&tables[0]).len(), 1);
        assert_eq!(object(&tables[0])["stackless"], 2);
    }

    #[test]
    fn two_stacks_follow_their_rows() {
        let text = "map m e by kstack,comm,ustack\noverflow 0\nlacking 0\nstackless 0\nkstack comm ustack count\n\
            f;g \"a\" 7:0:0x10;0x20 12\nh \"b\" - 3\n";
        let tables = maps::parse(text).unwrap();
        let mut text = String::new();
        write(&tables[0], 9, &mut text).unwrap();
        let all = "count  comm\n   12  a\n    f\n    g\n    --\n    7:0:0x10\n    0x20\n    3  b\n    h\n    --\n    -\n";
        assert_eq!(text, all);
        assert_eq!(object(&tables[0])["rows"][0]["ustack"], "7:0:0x10;0x20");
    }

    #[test]
    fn each_counter_of_missing_events_is_told() {
        let text = "map m e by kstack from b\noverflow 1\nlacking 2\nunmatched 3\nrepeated 4\ndropped 5\nstackless 6\n\
            kstack count\n\n";
        let told = warnings(&maps::parse(text).unwrap()[0]);
        let mut numbers: Vec<_> = told
            .iter()
            .map(|line| line.split_once(' ').unwrap().0)
            .collect();
        numbers.sort();
        assert_eq!(numbers, ["1", "2", "3", "4", "5", "6"], "{told:?}");
    }

    #[test]
    fn names_neither_break_rows_nor_command_the_terminal() {
        let text = "map m e by comm\noverflow 0\nlacking 0\ncomm count\n\
            \"\\x1b[31mRED\" 2\n\"new\\x0aline\\xff\" 1\n";
        let tables = maps::parse(text).unwrap();
        let mut text = String::new();
        write(&tables[0], 9, &mut text).unwrap();
        let expected = "count  comm\n    2  \\x1b[31mRED\n    1  new\\x0aline\\xff\n";
        assert_eq!(text, expected);
        assert_eq!(object(&tables[0])["rows"][1]["comm"], "new\nline\\xff");
    }

    #[test]
    fn rows_are_sorted() {
        let mut tables = tables();
        let order = |table: &mut MapTable, by| {
            sort(table, by);
            let keys = table.rows.iter().map(|row| row.keys[0].to_string());
            keys.collect::<String>()
        };
        for (by, expected) in [
            (None, "ab"),
            (Some("count"), "ba"),
            (Some("max(n)"), "ab"),
            (Some("cpu"), "ba"),
            (Some("comm"), "ab"),
        ] {
            assert_eq!(order(&mut tables[0], by), expected, "{by:?}");
        }
        assert_eq!(order(&mut tables[1], None), "bba");
        assert_eq!(order(&mut tables[1], Some("comm")), "abb");
    }

    #[test]
    fn answers() {
        let mut tables = tables();
        tables.iter_mut().for_each(|table| sort(table, None));
        let maps = Maps(tables);
        let mut text = String::new();
        maps.text(&mut text, 1).unwrap();
        let expected = "
map bytes e by comm,cpu sum(n) max(n)
count  sum(n)  max(n)  comm  cpu
    4      30       8  a     1
and 1 more rows (-n 0 shows all)
3 events had no room and are not in the table: choose a larger size
2 events lacked a value and are not in the table

map sizes e by comm hist(n)

comm b, 9 events by n
     1  5  ########################################
16..17  4  ################################
and 1 more rows (-n 0 shows all)
";
        assert_eq!(text, expected);
        let json = maps.json().unwrap();
        assert_eq!(json[0]["rows"][0]["sum(n)"], 30);
        assert_eq!(json[0]["overflow"]["max(n)"], 5);
        assert_eq!(
            json[1]["rows"][1],
            json!({"comm": "b", "from": 16, "to": 17, "count": 4})
        );
    }
}
