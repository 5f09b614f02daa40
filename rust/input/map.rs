// SPDX-License-Identifier: GPL-2.0

//! Maps: the lines of the `set_map` file.
//!
//! ```text
//! line  := name events clause* [ "if" expression ]
//!        | "!" name
//! clause := "by" key { "," key }
//!         | ( "sum" | "min" | "max" | "hist" ) "(" value ")"
//!         | "from" events [ "match" value { "," value } [ ":" value { "," value } ] ]
//!         | "size" number
//! events := pattern { "," pattern }
//! ```
//!
//! A key and a value are names of fields or contexts. A key can also be `event`, the name of the event. With `from`,
//! `duration` is a value: the time since the latest of these events whose values of `match` are the same. Without
//! `from`, `duration` is the field of that name.

use super::caret;
use super::name;
use super::rest::Rest;
use core::fmt;

/// Maximum number of `sum`, `min` and `max` clauses.
pub const MAX_COLUMNS: usize = 4;

/// Maximum number of keys.
pub const MAX_KEYS: usize = 4;

/// Maximum number of values on each side of `match`.
pub const MAX_MATCHED: usize = 2;

/// Name of the value that is the time since the begin.
pub const DURATION: &str = "duration";

/// Number of slots of each CPU's table, unless the line has another size.
pub const DEFAULT_SIZE: u32 = 2048;

/// Largest number of slots.
pub const MAX_SIZE: u32 = 1 << 18;

/// A part of the line, with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinePart<'a> {
    /// The text.
    pub text: &'a str,
    /// Position of its first byte.
    pub at: usize,
}

impl<'a> LinePart<'a> {
    /// The items of a list that commas separate.
    pub fn items(self) -> impl Iterator<Item = LinePart<'a>> + Clone {
        let Self { text, at } = self;
        let mut next = at;
        text.split(',').map(move |text| {
            let at = next;
            next = at.wrapping_add(text.len()).wrapping_add(1);
            LinePart { text, at }
        })
    }
}

/// The action of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Adds up the values.
    Sum,
    /// Keeps the smallest value.
    Min,
    /// Keeps the largest value.
    Max,
}

impl ColumnKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Sum, Self::Min, Self::Max];

    /// Name of the clause.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
        }
    }
}

/// A line that defines a map, or deletes one.
// A line is parsed on the stack, one at a time, so its size does not matter.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapLine<'a> {
    /// Deletes the map with this name.
    Delete(&'a str),
    /// Defines a map.
    Define(MapDefinition<'a>),
}

/// A map, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapDefinition<'a> {
    /// The map's name.
    pub name: &'a str,
    /// Patterns of its events.
    pub events: LinePart<'a>,
    /// Names of its keys; [`None`]: the map has one entry.
    pub keys: Option<LinePart<'a>>,
    /// Columns beside the count, in their order.
    pub columns: [Option<(ColumnKind, LinePart<'a>)>; MAX_COLUMNS],
    /// Value that the histogram has buckets of.
    pub hist: Option<LinePart<'a>>,
    /// Patterns of the events that begin a duration.
    pub begins: Option<LinePart<'a>>,
    /// Values that are the same at a begin and at its end: those of the begin, and those of the end. [`None`]: the
    /// thread.
    pub matched: Option<(LinePart<'a>, LinePart<'a>)>,
    /// Number of slots of each CPU's table.
    pub size: u32,
    /// Filter for the records of the events.
    pub filter: Option<LinePart<'a>>,
}

/// An error in a line.
pub type Error = caret::Error<MapReason>;

/// Description of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapReason {
    /// The name is not valid.
    NoName(&'static str),
    /// More text after the name of the map to delete.
    TooMuch,
    /// The patterns of the events are missing.
    NoEvents,
    /// A word that begins no clause.
    NoClause,
    /// The clause is given twice.
    Twice,
    /// An empty item in a list.
    NoKey,
    /// More than [`MAX_KEYS`] keys.
    ManyKeys,
    /// More than [`MAX_COLUMNS`] columns.
    ManyColumns,
    /// No value in parentheses.
    NoValue,
    /// `match` without `from`.
    NoFrom,
    /// The two sides of `match` have different numbers of values, or more than [`MAX_MATCHED`].
    NoMatch,
    /// Not a size.
    NoSize,
    /// No filter after `if`.
    NoFilter,
}

impl fmt::Display for MapReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::NoName(why) => why,
            Self::TooMuch => "expected the end",
            Self::NoEvents => "expected the patterns of events",
            Self::NoClause => {
                "expected 'by KEY', 'sum(VALUE)', 'min(VALUE)', 'max(VALUE)', 'hist(VALUE)', 'from EVENT', 'match VALUE', 'size N' or 'if FILTER'"
            }
            Self::Twice => "the clause is given twice",
            Self::NoKey => "expected the name of a field or context, or 'event'",
            Self::ManyKeys => return write!(f, "a map has at most {MAX_KEYS} keys"),
            Self::ManyColumns => return write!(f, "a map has at most {MAX_COLUMNS} columns"),
            Self::NoValue => "expected '(', the name of a field or context, and ')'",
            Self::NoFrom => "'match' comes after 'from EVENT'",
            Self::NoMatch => {
                return write!(
                    f,
                    "expected at most {MAX_MATCHED} values, and as many after ':' as before"
                )
            }
            Self::NoSize => return write!(f, "expected a number from 1 to {MAX_SIZE}"),
            Self::NoFilter => "expected a filter after 'if'",
        })
    }
}

fn word<'a>(rest: &mut Rest<'a>) -> LinePart<'a> {
    rest.skip_space();
    let at = rest.at;
    let text = rest.take_while(|c| !c.is_ascii_whitespace());
    LinePart { text, at }
}

impl<'a> MapLine<'a> {
    /// Parses a line. May run in any context.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        let mut rest = Rest::new(text);
        rest.skip_space();
        let deletes = rest.take("!");
        let name = word(&mut rest);
        if let Some(why) = name::refusal(name.text) {
            let (at, reason) = (name.at, MapReason::NoName(why));
            return Err(Error { at, reason });
        }
        if deletes {
            rest.skip_space();
            return match rest.left() {
                "" => Ok(Self::Delete(name.text)),
                _ => rest.error(MapReason::TooMuch),
            };
        }
        let events = word(&mut rest);
        let mut map = MapDefinition {
            name: name.text,
            events: list(events, MapReason::NoEvents)?,
            keys: None,
            columns: [None; MAX_COLUMNS],
            hist: None,
            begins: None,
            matched: None,
            size: DEFAULT_SIZE,
            filter: None,
        };
        let mut has_size = false;
        loop {
            rest.skip_space();
            let (at, text) = (rest.at, rest.left());
            if text.is_empty() {
                return Ok(MapLine::Define(map));
            }
            let twice = Error {
                at,
                reason: MapReason::Twice,
            };
            let clause = rest.take_while(|c| c.is_ascii_alphanumeric());
            let mut columns = ColumnKind::ALL.into_iter();
            if let Some(column) = columns.find(|column| column.name() == clause) {
                let value = value(&mut rest)?;
                let places = &mut map.columns;
                let place = places.iter_mut().find(|place| place.is_none());
                let reason = MapReason::ManyColumns;
                *place.ok_or(Error { at, reason })? = Some((column, value));
                continue;
            }
            match clause {
                "by" => {
                    let keys = list(word(&mut rest), MapReason::NoKey)?;
                    if let Some(key) = keys.items().nth(MAX_KEYS) {
                        let (at, reason) = (key.at, MapReason::ManyKeys);
                        return Err(Error { at, reason });
                    }
                    if map.keys.replace(keys).is_some() {
                        return Err(twice);
                    }
                }
                "hist" => {
                    let value = value(&mut rest)?;
                    if map.hist.replace(value).is_some() {
                        return Err(twice);
                    }
                }
                "from" => {
                    let begins = list(word(&mut rest), MapReason::NoEvents)?;
                    if map.begins.replace(begins).is_some() {
                        return Err(twice);
                    }
                }
                "match" if map.begins.is_none() => {
                    let reason = MapReason::NoFrom;
                    return Err(Error { at, reason });
                }
                "match" => {
                    let matched = matched(word(&mut rest))?;
                    if map.matched.replace(matched).is_some() {
                        return Err(twice);
                    }
                }
                "size" => {
                    let size = word(&mut rest);
                    let (at, reason) = (size.at, MapReason::NoSize);
                    map.size = size
                        .text
                        .parse::<u32>()
                        .ok()
                        .filter(|size| (1..=MAX_SIZE).contains(size))
                        .ok_or(Error { at, reason })?;
                    if core::mem::replace(&mut has_size, true) {
                        return Err(twice);
                    }
                }
                "if" if rest.peek().is_none_or(|c| c.is_ascii_whitespace()) => {
                    rest.skip_space();
                    let (at, text) = (rest.at, rest.left().trim_ascii_end());
                    if text.is_empty() {
                        return rest.error(MapReason::NoFilter);
                    }
                    map.filter = Some(LinePart { text, at });
                    return Ok(MapLine::Define(map));
                }
                _ => {
                    let reason = MapReason::NoClause;
                    return Err(Error { at, reason });
                }
            }
        }
    }
}

/// Parses the values of `match`: those of the begin, and those of the end if they have other names.
fn matched(part: LinePart<'_>) -> Result<(LinePart<'_>, LinePart<'_>), Error> {
    let (begin, end) = match part.text.split_once(':') {
        None => (part, part),
        Some((begin, end)) => {
            let after = part.at.wrapping_add(begin.len()).wrapping_add(1);
            let begin = LinePart {
                text: begin,
                at: part.at,
            };
            let end = LinePart {
                text: end,
                at: after,
            };
            (begin, end)
        }
    };
    let (begin, end) = (
        list(begin, MapReason::NoMatch)?,
        list(end, MapReason::NoMatch)?,
    );
    let count = begin.items().count();
    if count > MAX_MATCHED || count != end.items().count() {
        let (at, reason) = (part.at, MapReason::NoMatch);
        return Err(Error { at, reason });
    }
    Ok((begin, end))
}

/// Checks a list: no item is empty.
fn list(list: LinePart<'_>, reason: MapReason) -> Result<LinePart<'_>, Error> {
    match list.items().find(|item| item.text.is_empty()) {
        Some(LinePart { at, .. }) => Err(Error { at, reason }),
        None => Ok(list),
    }
}

/// Consumes a value in parentheses.
fn value<'a>(rest: &mut Rest<'a>) -> Result<LinePart<'a>, Error> {
    let before = *rest;
    let opens = rest.take("(");
    let at = rest.at;
    let text = rest.take_while(super::rest::is_of_name);
    let closes = rest.take(")");
    if !opens || text.is_empty() || !closes {
        return before.error(MapReason::NoValue);
    }
    Ok(LinePart { text, at })
}

/// Formats the map so that it can be defined again.
impl fmt::Display for MapDefinition<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.events.text)?;
        if let Some(keys) = self.keys {
            write!(f, " by {}", keys.text)?;
        }
        for (column, value) in self.columns.iter().flatten() {
            write!(f, " {}({})", column.name(), value.text)?;
        }
        if let Some(value) = self.hist {
            write!(f, " hist({})", value.text)?;
        }
        if let Some(begins) = self.begins {
            write!(f, " from {}", begins.text)?;
        }
        match self.matched {
            Some((begin, end)) if begin == end => write!(f, " match {}", begin.text)?,
            Some((begin, end)) => write!(f, " match {}:{}", begin.text, end.text)?,
            None => {}
        }
        if self.size != DEFAULT_SIZE {
            write!(f, " size {}", self.size)?;
        }
        match self.filter {
            Some(filter) => write!(f, " if {}", filter.text),
            None => Ok(()),
        }
    }
}
