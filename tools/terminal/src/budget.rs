// SPDX-License-Identifier: GPL-2.0

//! The size of an answer. Rows that do not fit are left out, and the answer says so.
//!
//! A program that reads an answer, such as one with a language model, has room for a number of tokens.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// Bytes of a token, on average: reports have many digits, so their tokens are shorter than those of prose.
const TOKEN: usize = 3;
/// Smallest number of tokens. The head of an answer, and the line about the rows left out, need them.
const LEAST: usize = 100;
/// Room for the line or field about the rows left out.
const NOTE: usize = 240;
/// Number of elements that a list of plain values keeps, such as the names of columns.
const PLAIN: usize = 8;
/// Lists of a JSON object that are never cut: they say what is wrong with the other figures.
const WHOLE: [&str; 2] = ["warnings", "hints"];
/// Lists whose last elements matter most.
const NEWEST_LAST: [&str; 1] = ["segments"];
/// How to get the rows that were left out.
const HOW: &str = "a larger --budget shows more; without --budget, -n 0 or --json shows all";

/// The size of an answer, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget(usize);

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let tokens = text
            .parse()
            .map_err(|error: ParseIntError| error.to_string())?;
        match tokens {
            LEAST.. => Ok(Self(tokens)),
            _ => Err(format!("an answer needs at least {LEAST} tokens")),
        }
    }
}

/// The size of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Rows of each table.
    Rows(usize),
    /// Tokens of the whole text.
    Tokens(Budget),
}

impl Size {
    /// The budget, if there is one, and otherwise the number of rows.
    pub fn new(rows: usize, budget: Option<Budget>) -> Self {
        budget.map_or(Self::Rows(rows), Self::Tokens)
    }

    /// Renders a text of this size. `render` gets the maximum number of rows of each table.
    pub fn text(
        self,
        render: impl Fn(usize) -> Result<String, fmt::Error>,
    ) -> Result<String, fmt::Error> {
        match self {
            Self::Rows(rows) => render(rows),
            Self::Tokens(budget) => budget.text(render),
        }
    }
}

/// Rows that an answer leaves out because of its budget.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct LeftOut {
    /// Number of these rows, without the rows below them.
    pub rows: u64,
    /// Number of these rows by list. The lists of several rows with one name are added.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lists: BTreeMap<String, u64>,
    /// How to get them.
    pub how: &'static str,
}

impl LeftOut {
    /// Rows of a table or list that has no name.
    pub fn rows(rows: u64) -> Self {
        Self {
            rows,
            lists: BTreeMap::new(),
            how: HOW,
        }
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows left out: {}", self.rows, self.how)
    }
}

impl Budget {
    /// Number of bytes of the rows, without the line about those left out.
    pub fn bytes(self) -> usize {
        self.0.saturating_mul(TOKEN).saturating_sub(NOTE)
    }

    /// Renders a text. `render` gets the maximum number of rows of each table, and the budget sets the largest one whose
    /// text fits. If no number fits, other lines before the last paragraph are left out, too. The last line of the text
    /// then says how many rows or lines are left out.
    fn text(
        self,
        render: impl Fn(usize) -> Result<String, fmt::Error>,
    ) -> Result<String, fmt::Error> {
        let whole = render(usize::MAX)?;
        if whole.len() <= self.bytes() {
            return Ok(whole);
        }
        // With this number of rows nothing is left out.
        let (mut fits, mut exceeds) = (0, whole.lines().count() + 1);
        let mut shown = render(1)?;
        while exceeds - fits > 1 {
            let rows = fits + (exceeds - fits) / 2;
            let text = render(rows)?;
            match text.len() <= self.bytes() {
                true => (fits, shown) = (rows, text),
                false => exceeds = rows,
            }
        }
        if shown.len() <= self.bytes() {
            let left = LeftOut::rows(missing(&whole, &shown));
            return Ok(format!("{shown}{left}\n"));
        }
        shown = without_middle(&shown, self.bytes());
        let left = missing(&whole, &shown);
        Ok(format!("{shown}{left} lines left out: {HOW}\n"))
    }

    /// Cuts the lists of a JSON value at the largest common length with which the value fits, and returns what was left
    /// out. Lists of plain values, and lists that explain the figures, are kept.
    pub fn cut(self, value: &mut Value) -> serde_json::Result<Option<LeftOut>> {
        let fits = |value: &Value| Ok(serde_json::to_string(value)?.len() <= self.bytes());
        if fits(value)? {
            return Ok(None);
        }
        let (mut fitting, mut exceeding) = (0, longest(value) + 1);
        let at = |length: usize, value: &Value| {
            let (mut value, mut lists) = (value.clone(), BTreeMap::new());
            cut(&mut value, "", length, &mut lists);
            (value, lists)
        };
        while exceeding - fitting > 1 {
            let length = fitting + (exceeding - fitting) / 2;
            match fits(&at(length, value).0)? {
                true => fitting = length,
                false => exceeding = length,
            }
        }
        let (kept, lists) = at(fitting, value);
        *value = kept;
        Ok(Some(LeftOut {
            rows: lists.values().sum(),
            lists,
            how: HOW,
        }))
    }
}

/// Leaves out lines before the last paragraph of a text, so that it has at most `most` bytes if possible.
fn without_middle(text: &str, most: usize) -> String {
    let end = text
        .trim_end()
        .rfind("\n\n")
        .map_or(text.len(), |at| at + 1);
    let (before, last) = text.split_at(end);
    let mut kept = String::new();
    for line in before.split_inclusive('\n') {
        if kept.len() + line.len() + last.len() > most {
            break;
        }
        kept.push_str(line);
    }
    kept + last
}

/// Number of lines of `whole` that `shown` has not. Columns may have other widths there.
fn missing(whole: &str, shown: &str) -> u64 {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut lines: HashMap<String, u64> = HashMap::new();
    for line in shown.lines() {
        *lines.entry(words(line)).or_default() += 1;
    }
    let missing = whole.lines().filter(|line| {
        let line = words(line);
        let count = lines.get_mut(&line).filter(|count| **count > 0);
        let is_missing = count.is_none() && !line.is_empty();
        if let Some(count) = count {
            *count -= 1;
        }
        is_missing
    });
    missing.count() as u64
}

/// Length of the longest list in a value.
fn longest(value: &Value) -> usize {
    match value {
        Value::Array(list) => list.iter().map(longest).fold(list.len(), usize::max),
        Value::Object(fields) => fields.values().map(longest).max().unwrap_or(0),
        _ => 0,
    }
}

/// Cuts the lists of a value, which has this name, to a length. Adds the number of left out elements to `lists`.
fn cut(value: &mut Value, name: &str, length: usize, lists: &mut BTreeMap<String, u64>) {
    match value {
        Value::Array(_) if WHOLE.contains(&name) => {}
        Value::Array(list) => {
            let is_plain = list
                .iter()
                .all(|item| !item.is_object() && !item.is_array());
            let length = match is_plain {
                true => length.max(PLAIN),
                false => length,
            };
            let left = list.len().saturating_sub(length);
            if left > 0 {
                *lists.entry(name.to_owned()).or_default() += left as u64;
            }
            match NEWEST_LAST.contains(&name) {
                true => drop(list.drain(..left)),
                false => list.truncate(length),
            }
            list.iter_mut()
                .for_each(|item| cut(item, name, length, lists));
        }
        Value::Object(fields) => cut_fields(fields, length, lists),
        _ => {}
    }
}

fn cut_fields(fields: &mut Map<String, Value>, length: usize, lists: &mut BTreeMap<String, u64>) {
    for (name, value) in fields {
        cut(value, name, length, lists);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fmt::Write;

    /// A report with two tables.
    fn render(all: usize, rows: usize) -> Result<String, fmt::Error> {
        let mut out = "head\n".to_owned();
        for table in ["a", "b"] {
            writeln!(out, "\ntable {table}")?;
            (0..all.min(rows)).try_for_each(|row| writeln!(out, "{table}{row:>7}"))?;
            if all > rows {
                writeln!(out, "{} more (-n 0 shows all)", all - rows)?;
            }
        }
        writeln!(out, "\n7 events recorded, 0 lost")?;
        Ok(out)
    }

    #[test]
    fn a_text_has_the_rows_that_fit() {
        for tokens in [150, 151, 333, 1000] {
            let budget = Budget(tokens);
            let text = budget.text(|rows| render(500, rows)).unwrap();
            assert!(text.len() <= tokens * TOKEN, "{text}");
            let rows = text.lines().filter(|line| line.contains("   ")).count();
            let note = text.lines().last().unwrap();
            assert_eq!(
                note,
                LeftOut::rows(1000 - rows as u64).to_string(),
                "{text}"
            );
            assert!(text.contains("7 events recorded, 0 lost"), "{text}");
        }
        let whole = Budget(1000).text(|rows| render(5, rows)).unwrap();
        assert_eq!(whole, render(5, 5).unwrap());
    }

    #[test]
    fn lines_that_are_no_rows_are_left_out_last() {
        let cpus = |_| {
            let cpus: Vec<_> = (0..500).map(|cpu| format!("CPU {cpu}\n")).collect();
            let cpus = cpus.concat();
            Ok(format!(
                "head\n\n{cpus}\n3 events were lost\n7 events recorded, 3 lost\n"
            ))
        };
        let text = Budget(200).text(cpus).unwrap();
        assert!(text.len() <= 200 * TOKEN, "{text}");
        assert!(text.starts_with("head\n\nCPU 0\n"), "{text}");
        let end: Vec<_> = text.lines().rev().take(3).collect();
        assert_eq!(
            end[1..],
            ["7 events recorded, 3 lost", "3 events were lost"]
        );
        let rows = text.lines().filter(|line| line.starts_with("CPU")).count();
        assert_eq!(end[0], format!("{} lines left out: {HOW}", 500 - rows));
    }

    #[test]
    fn a_value_has_the_rows_that_fit() {
        let rows: Vec<_> = (0..300)
            .map(|n| json!({"n": n, "below": [{"x": n}, {"x": 1}]}))
            .collect();
        let segments: Vec<_> = (0..300).map(|n| json!({"at": n})).collect();
        let words = vec!["a warning of some length"; 20];
        let whole = json!({
            "rows": rows, "path": {"segments": segments}, "columns": ["a", "b", "c"], "warnings": words
        });
        for tokens in [400, 500, 3000] {
            let mut value = whole.clone();
            let left = Budget(tokens).cut(&mut value).unwrap().unwrap();
            assert!(value.to_string().len() <= tokens * TOKEN, "{value}");
            let kept = value["rows"].as_array().unwrap().len();
            let newest = value["path"]["segments"].as_array().unwrap();
            assert_eq!(left.lists["rows"], 300 - kept as u64);
            assert_eq!(left.lists["segments"], 300 - newest.len() as u64);
            assert_eq!(left.rows, left.lists.values().sum::<u64>());
            assert!(
                newest.last().is_none_or(|last| last["at"] == 299),
                "{value}"
            );
            assert_eq!(value["columns"], whole["columns"]);
            assert_eq!(value["warnings"], whole["warnings"]);
        }
        let mut value = whole.clone();
        assert_eq!(Budget(100_000).cut(&mut value).unwrap(), None);
        assert_eq!(value, whole);
    }

    #[test]
    fn a_budget_has_room_for_an_answer() {
        assert_eq!("100".parse(), Ok(Budget(100)));
        for text in ["99", "0", "-1", "x", "", "99999999999999999999999"] {
            assert!(text.parse::<Budget>().is_err(), "{text}");
        }
        assert_eq!(Budget(usize::MAX).bytes(), usize::MAX - NOTE);
    }
}
