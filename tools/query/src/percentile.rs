// SPDX-License-Identifier: GPL-2.0

//! Percentiles as aggregates: `percentile_disc(0.99) WITHIN GROUP (ORDER BY x)`, or `quantile_disc(x, 0.99)`.
//!
//! Percentiles are exact. A group needs 16 bytes of memory for each of its values. SQLite's parser lacks the
//! first form. [`plain`] turns it into a call with two arguments, as SQLite itself would.

use crate::place::QUOTED;
use regex::{Captures, Regex};
use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Error, Result};

/// Kind of percentile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// A percentile is one of the values.
    Discrete,
    /// A percentile between two values is interpolated.
    Continuous,
}

/// A number, as SQLite has it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Integer(i64),
    Real(f64),
}

impl Number {
    fn real(self) -> f64 {
        match self {
            Self::Integer(number) => number as f64,
            Self::Real(number) => number,
        }
    }
}

/// Values of a group, and the requested percentile.
struct Group {
    values: Vec<Number>,
    part: f64,
}

struct Percentile {
    way: Way,
    /// Number of the argument that is the value.
    value: usize,
    part: Part,
}

/// Percentile of a function.
enum Part {
    /// The value of this argument.
    Argument(usize),
    /// The median.
    Half,
}

/// Returns the query with `f(P, X)` for each `f(P) WITHIN GROUP (ORDER BY X)`. All other characters keep their
/// places, so that errors show the right place.
pub fn plain(sql: &str) -> String {
    let pattern = format!(r"(?is){QUOTED}|\)\s*within\s+group\s*\(\s*order\s+by\b");
    let pattern = Regex::new(&pattern).expect("a valid pattern");
    let replaced = pattern.replace_all(sql, |found: &Captures<'_>| {
        match found[0].strip_prefix(')') {
            Some(rest) => {
                let blank = |c: char| if c == '\n' { c } else { ' ' };
                format!(",{}", rest.chars().map(blank).collect::<String>())
            }
            None => found[0].to_owned(),
        }
    });
    replaced.into_owned()
}

/// Adds the functions to a connection.
pub fn add(connection: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    for (name, way, value, part) in [
        ("percentile_disc", Way::Discrete, 1, 0),
        ("percentile_cont", Way::Continuous, 1, 0),
        ("quantile_disc", Way::Discrete, 0, 1),
        ("quantile_cont", Way::Continuous, 0, 1),
    ] {
        let part = Part::Argument(part);
        let percentile = Percentile { way, value, part };
        connection.create_aggregate_function(name, 2, flags, percentile)?;
    }
    let median = Percentile {
        way: Way::Continuous,
        value: 0,
        part: Part::Half,
    };
    connection.create_aggregate_function("median", 1, flags, median)
}

impl Aggregate<Group, Value> for Percentile {
    fn init(&self, context: &mut Context<'_>) -> Result<Group> {
        let part = match self.part {
            Part::Argument(number) => context.get(number)?,
            Part::Half => 0.5,
        };
        if !(0.0..=1.0).contains(&part) {
            let what = format!("a percentile is between 0 and 1, not {part}");
            return Err(Error::UserFunctionError(what.into()));
        }
        Ok(Group {
            values: Vec::new(),
            part,
        })
    }

    fn step(&self, context: &mut Context<'_>, group: &mut Group) -> Result<()> {
        match context.get_raw(self.value) {
            ValueRef::Null => {}
            ValueRef::Integer(number) => group.values.push(Number::Integer(number)),
            ValueRef::Real(number) => group.values.push(Number::Real(number)),
            ValueRef::Text(_) | ValueRef::Blob(_) => {
                return Err(Error::UserFunctionError(
                    "a percentile needs a column of numbers".into(),
                ));
            }
        }
        Ok(())
    }

    fn finalize(&self, _context: &mut Context<'_>, group: Option<Group>) -> Result<Value> {
        let Some(Group { mut values, part }) = group else {
            return Ok(Value::Null);
        };
        values.sort_unstable_by(|a, b| match (a, b) {
            (Number::Integer(a), Number::Integer(b)) => a.cmp(b),
            (a, b) => a.real().total_cmp(&b.real()),
        });
        let Some(last) = values.len().checked_sub(1) else {
            return Ok(Value::Null);
        };
        if self.way == Way::Discrete {
            let rank = (part * values.len() as f64).ceil() as usize;
            return Ok(match values[rank.saturating_sub(1).min(last)] {
                Number::Integer(number) => Value::Integer(number),
                Number::Real(number) => Value::Real(number),
            });
        }
        let place = part * last as f64;
        let below = place.floor();
        let (low, high) = (values[below as usize], values[place.ceil() as usize]);
        let (low, high) = (low.real(), high.real());
        Ok(Value::Real(low + (high - low) * (place - below)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(sql: &str) -> Result<Value> {
        let connection = Connection::open_in_memory()?;
        add(&connection)?;
        connection.query_row(&plain(sql), [], |row| row.get(0))
    }

    #[test]
    fn other_text_keeps_its_place() {
        let sql = "SELECT f(0.5)\n within group(ORDER  BY x), ') WITHIN GROUP (ORDER BY' -- ) within group (order by";
        let expected = "SELECT f(0.5,\n                        x), ') WITHIN GROUP (ORDER BY' -- ) within group (order by";
        assert_eq!(plain(sql), expected);
    }

    #[test]
    fn percentiles_are_those_of_other_engines() {
        let of = |function: &str| {
            let sql = format!("SELECT {function} FROM (VALUES (40), (10), (NULL), (30), (20))");
            ask(&sql.replace('x', "column1")).unwrap()
        };
        for (part, expected) in [
            ("0", 10),
            ("0.25", 10),
            ("0.5", 20),
            ("0.51", 30),
            ("1", 40),
        ] {
            let function = format!("percentile_disc({part}) WITHIN GROUP (ORDER BY x)");
            assert_eq!(of(&function), Value::Integer(expected), "{part}");
            let function = format!("quantile_disc(x, {part})");
            assert_eq!(of(&function), Value::Integer(expected), "{part}");
        }
        let function = "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)";
        assert_eq!(of(function), Value::Real(25.0));
        assert_eq!(of("quantile_cont(x, 0.1)"), Value::Real(13.0));
        assert_eq!(of("median(x)"), Value::Real(25.0));
        assert_eq!(ask("SELECT median(NULL)").unwrap(), Value::Null);
        // This integer exceeds the precision of a floating-point number.
        let large = "SELECT quantile_disc(9007199254740993, 0.5)";
        assert_eq!(ask(large).unwrap(), Value::Integer(9_007_199_254_740_993));
        for wrong in ["quantile_disc(1, 2)", "median('a')"] {
            assert!(ask(&format!("SELECT {wrong}")).is_err(), "{wrong}");
        }
    }
}
