// SPDX-License-Identifier: GPL-2.0

//! Histograms in ftrace's syntax: the trigger `hist` of an event, which defines a [map](super::map).
//!
//! ```text
//! line   := [ "!" ] "hist" { ":" option } [ "if" expression ]
//! option := ( "keys" | "key" ) "=" key { "," key }
//!         | ( "values" | "vals" | "val" ) "=" value { "," value }
//!         | "sort" "=" ( key | value ) [ ".descending" | ".ascending" ] { "," ... }
//!         | "size" "=" number
//!         | "name" "=" name
//!         | variable "=" "common_timestamp" [ "-$" variable ]
//!         | "onmatch(" subsystem "." event ")"
//!         | "onmax($" variable ")"
//!         | "clear"
//! key    := name [ ".hex" ] | name ".log2" | "$" variable ".log2"
//! value  := "hitcount" | name | "$" variable
//! ```
//!
//! A variable that is a time names the begin of a duration. A variable that is a time minus such a variable is the
//! duration. Both lines have the same number of keys, which are equal at the begin and at the end.

use super::caret;
use super::map::{LinePart, DEFAULT_SIZE, MAX_COLUMNS, MAX_KEYS, MAX_MATCHED, MAX_SIZE};
use super::name;
use super::rest::{is_of_name, Rest};
use core::fmt;

/// Name of the trigger.
pub const HIST: &str = "hist";

/// The value that is always there: the number of updates.
pub const HITCOUNT: &str = "hitcount";

/// Maximum number of names to sort by, as in ftrace.
pub const MAX_SORTS: usize = 2;

const TIME: &str = "common_timestamp";
const BUCKETS: &str = ".log2";
const HEX: &str = ".hex";

/// A histogram, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistLine<'a> {
    /// Whether the line deletes the histogram.
    pub removes: bool,
    /// Whether the line removes the entries of the histogram.
    pub clears: bool,
    /// The keys.
    pub keys: LinePart<'a>,
    /// The values.
    pub values: Option<LinePart<'a>>,
    /// Names to sort the entries by.
    pub sort: Option<LinePart<'a>>,
    /// Number of slots of each CPU's table.
    pub size: u32,
    /// Name of the map.
    pub name: Option<&'a str>,
    /// Variable that is the event's time: the event begins a duration.
    pub begin: Option<&'a str>,
    /// Variable that is a duration, and the variable of its begin.
    pub duration: Option<(&'a str, LinePart<'a>)>,
    /// Event that begins the duration, with its subsystem.
    pub matched: Option<LinePart<'a>>,
    /// Whether the largest duration is a value.
    pub has_max: bool,
    /// Filter for the records of the event.
    pub filter: Option<LinePart<'a>>,
}

/// The order of the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistOrder {
    /// By the number of updates.
    Count,
    /// By a key, by its place in the map.
    Key(usize),
    /// By a column, by its place in the map.
    Column(usize),
}

/// The histogram where a duration begins.
#[derive(Clone, Copy, Debug)]
pub struct HistBegin<'a> {
    /// Names of the event's subsystem and of the event.
    pub event: (&'a str, &'a str),
    /// Keys of the histogram.
    pub keys: &'a str,
}

/// An error in a line.
pub type Error = caret::Error<HistReason>;

/// Description of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistReason {
    /// Not an option.
    NoOption,
    /// The option is given twice.
    Twice,
    /// There are no keys.
    NoKeys,
    /// Not a key.
    NoKey,
    /// Too many keys.
    ManyKeys,
    /// Not a value.
    NoValue,
    /// Too many values.
    ManyValues,
    /// A name to sort by that is no key and no value.
    NoSort,
    /// Not a size.
    NoSize,
    /// Not a name.
    NoName(&'static str),
    /// Not a time.
    NoTime,
    /// Not a variable of a duration.
    NoDuration,
    /// Not an event.
    NoEvent,
    /// The begin has another number of keys, or too many.
    NoMatch,
    /// A word other than `if`.
    NoIf,
    /// No filter after `if`.
    NoFilter,
}

impl fmt::Display for HistReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::NoOption => {
                "expected ':' and 'keys=', 'vals=', 'sort=', 'size=', 'name=', 'VARIABLE=', 'onmatch(SUBSYSTEM.EVENT)', 'onmax($VARIABLE)' or 'clear'"
            }
            Self::Twice => "the option is given twice",
            Self::NoKeys => "expected ':keys=' and the names of fields or contexts",
            Self::NoKey => "expected the name of a field or context, which '.hex' or one '.log2' can follow",
            Self::ManyKeys => return write!(f, "a map has at most {MAX_KEYS} keys"),
            Self::NoValue => "expected 'hitcount', the name of a field or context, or '$' and the variable of a duration",
            Self::ManyValues => return write!(f, "a map has at most {MAX_COLUMNS} columns"),
            Self::NoSort => {
                return write!(
                    f,
                    "expected at most {MAX_SORTS} keys or values, which '.descending' can follow"
                )
            }
            Self::NoSize => return write!(f, "expected a number from 1 to {MAX_SIZE}"),
            Self::NoName(why) => why,
            Self::NoTime => "expected 'common_timestamp', in nanoseconds, or 'common_timestamp-$VARIABLE'",
            Self::NoDuration => "expected '$' and a variable that is a duration",
            Self::NoEvent => "expected SUBSYSTEM.EVENT, ')' and no action",
            Self::NoMatch => {
                return write!(
                    f,
                    "the begin and the end have the same number of keys, at most {MAX_MATCHED}"
                )
            }
            Self::NoIf => "expected 'if' and a filter, or the end",
            Self::NoFilter => "expected a filter after 'if'",
        })
    }
}

/// Whether a trigger is a histogram.
pub fn is_hist(trigger: &str) -> bool {
    let trigger = trigger.trim_ascii_start();
    let action = trigger.strip_prefix('!').unwrap_or(trigger);
    let rest = action.strip_prefix(HIST);
    rest.is_some_and(|rest| !rest.starts_with(is_of_name))
}

impl<'a> HistLine<'a> {
    /// Parses a line. May run in any context.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        let mut rest = Rest::new(text);
        rest.skip_space();
        let mut line = Self {
            removes: rest.take("!"),
            clears: false,
            keys: LinePart { text: "", at: 0 },
            values: None,
            sort: None,
            size: DEFAULT_SIZE,
            name: None,
            begin: None,
            duration: None,
            matched: None,
            has_max: false,
            filter: None,
        };
        if !rest.take(HIST) {
            return rest.error(HistReason::NoOption);
        }
        let (mut has_size, mut max) = (false, None);
        while rest.take(":") {
            line.option(&mut rest, &mut has_size, &mut max)?;
        }
        if rest.peek().is_some_and(|c| !c.is_ascii_whitespace()) {
            return rest.error(HistReason::NoOption);
        }
        if line.keys.text.is_empty() {
            return rest.error(HistReason::NoKeys);
        }
        line.check(max)?;
        rest.skip_space();
        if rest.left().is_empty() {
            return Ok(line);
        }
        let before = rest;
        if rest.take_while(|c| !c.is_ascii_whitespace()) != "if" {
            return before.error(HistReason::NoIf);
        }
        rest.skip_space();
        let (at, text) = (rest.at, rest.left().trim_ascii_end());
        if text.is_empty() {
            return rest.error(HistReason::NoFilter);
        }
        line.filter = Some(LinePart { text, at });
        Ok(line)
    }

    /// Parses an option after its colon.
    fn option(
        &mut self,
        rest: &mut Rest<'a>,
        has_size: &mut bool,
        max: &mut Option<LinePart<'a>>,
    ) -> Result<(), Error> {
        let before = *rest;
        let option = rest.take_while(is_of_name);
        let is_twice = if rest.take("(") {
            let at = rest.at;
            let text = rest.take_while(|c| c != ')' && !ends_option(c));
            let argument = LinePart { text, at };
            let closes = rest.take(")");
            let place = match option {
                "onmatch" => &mut self.matched,
                "onmax" => &mut *max,
                _ => return before.error(HistReason::NoOption),
            };
            if !closes || rest.peek().is_some_and(|c| !ends_option(c)) {
                let reason = HistReason::NoEvent;
                return Err(Error { at, reason });
            }
            place.replace(argument).is_some()
        } else if rest.take("=") {
            let at = rest.at;
            let text = rest.take_while(|c| !ends_option(c));
            let part = LinePart { text, at };
            let wrong = |reason| Err(Error { at, reason });
            match option {
                "keys" | "key" => {
                    let before = core::mem::replace(&mut self.keys, part);
                    !before.text.is_empty()
                }
                "values" | "vals" | "val" => self.values.replace(part).is_some(),
                "sort" => self.sort.replace(part).is_some(),
                "size" => {
                    let size = text.parse::<u32>().ok();
                    match size.filter(|size| (1..=MAX_SIZE).contains(size)) {
                        Some(size) => self.size = size,
                        None => return wrong(HistReason::NoSize),
                    }
                    core::mem::replace(has_size, true)
                }
                "name" => match name::refusal(text) {
                    Some(why) => return wrong(HistReason::NoName(why)),
                    None => self.name.replace(text).is_some(),
                },
                "" => return before.error(HistReason::NoOption),
                variable if text == TIME => self.begin.replace(variable).is_some(),
                variable => {
                    let begin = text.strip_prefix(TIME).and_then(|t| t.strip_prefix("-$"));
                    let is_variable = |name: &&str| is_variable(name);
                    let Some(text) = begin.filter(is_variable) else {
                        return wrong(HistReason::NoTime);
                    };
                    let at = at.wrapping_add(part.text.len().wrapping_sub(text.len()));
                    let begin = LinePart { text, at };
                    self.duration.replace((variable, begin)).is_some()
                }
            }
        } else if option == "clear" {
            core::mem::replace(&mut self.clears, true)
        } else {
            return before.error(HistReason::NoOption);
        };
        match is_twice {
            true => before.error(HistReason::Twice),
            false => Ok(()),
        }
    }

    /// Checks keys, values and names to sort by.
    fn check(&mut self, max: Option<LinePart<'a>>) -> Result<(), Error> {
        let wrong = |part: LinePart<'_>, reason| {
            Err(Error {
                at: part.at,
                reason,
            })
        };
        let mut buckets = 0_usize;
        for (place, key) in self.keys.items().enumerate() {
            let base = base(key.text);
            let is_valid = match key.text.strip_suffix(BUCKETS) {
                Some(name) => {
                    buckets = buckets.wrapping_add(1);
                    buckets == 1 && (is_variable(name) || self.is_duration(name))
                }
                None => is_variable(base),
            };
            if !is_valid {
                return wrong(key, HistReason::NoKey);
            }
            if place == MAX_KEYS {
                return wrong(key, HistReason::ManyKeys);
            }
        }
        if let Some(max) = max {
            if !self.is_duration(max.text) {
                return wrong(max, HistReason::NoDuration);
            }
            self.has_max = true;
        }
        let mut columns = usize::from(self.has_max);
        for value in self.values.into_iter().flat_map(LinePart::items) {
            if value.text == HITCOUNT {
                continue;
            }
            if !is_variable(value.text) && !self.is_duration(value.text) {
                return wrong(value, HistReason::NoValue);
            }
            columns = columns.wrapping_add(1);
            if columns > MAX_COLUMNS {
                return wrong(value, HistReason::ManyValues);
            }
        }
        let sort = self.sort.into_iter().flat_map(LinePart::items);
        for (place, item) in sort.enumerate() {
            if place == MAX_SORTS || self.order_of(item.text).is_none() {
                return wrong(item, HistReason::NoSort);
            }
        }
        if let Some(matched) = self.matched {
            let names = matched.text.split_once('.');
            if self.duration.is_none()
                || names.is_none_or(|(a, b)| !is_variable(a) || !is_variable(b))
            {
                return wrong(matched, HistReason::NoEvent);
            }
        }
        Ok(())
    }

    fn is_duration(&self, name: &str) -> bool {
        let variable = name.strip_prefix('$');
        self.duration
            .is_some_and(|(known, _)| Some(known) == variable)
    }

    /// The keys of the map, in its order: the one with buckets is the last.
    pub fn map_keys(&self) -> impl Iterator<Item = LinePart<'a>> + Clone {
        let is_bucket = |key: &LinePart<'_>| key.text.ends_with(BUCKETS);
        let (all, last) = (self.keys.items(), self.keys.items());
        let all = all.filter(move |key| !is_bucket(key));
        all.chain(last.filter(is_bucket))
    }

    /// The values that have a column of the map, in its order; the largest duration not included.
    pub fn map_values(&self) -> impl Iterator<Item = LinePart<'a>> + Clone {
        let values = self.values.into_iter().flat_map(LinePart::items);
        values.filter(|value| value.text != HITCOUNT)
    }

    /// The orders to sort by, and whether each is descending. Without any: by count.
    pub fn orders(&self) -> impl Iterator<Item = (HistOrder, bool)> + Clone + '_ {
        let sort = self.sort.into_iter().flat_map(LinePart::items);
        sort.filter_map(|item| self.order_of(item.text))
    }

    fn order_of(&self, item: &str) -> Option<(HistOrder, bool)> {
        let (name, descends) = match item.strip_suffix(".descending") {
            Some(name) => (name, true),
            None => (item.strip_suffix(".ascending").unwrap_or(item), false),
        };
        let mut keys = self.map_keys();
        let order = if name == HITCOUNT {
            HistOrder::Count
        } else if let Some(at) = keys.position(|key| base(key.text) == name) {
            HistOrder::Key(at)
        } else {
            let at = self.map_values().position(|value| value.text == name)?;
            HistOrder::Column(at)
        };
        Some((order, descends))
    }

    /// Writes the line that defines the map of this name, at this event. `begin` has the begin of a duration.
    pub fn write_map(
        &self,
        name: &str,
        event: (&str, &str),
        begin: Option<HistBegin<'_>>,
        out: &mut dyn fmt::Write,
    ) -> Result<(), WriteError> {
        write!(out, "{name} {}:{}", event.0, event.1)?;
        for (place, key) in self.map_keys().enumerate() {
            match key.text.strip_suffix(BUCKETS) {
                Some(name) => write!(out, " hist({})", self.value_name(name))?,
                None if place == 0 => write!(out, " by {}", map_name(base(key.text)))?,
                None => write!(out, ",{}", map_name(base(key.text)))?,
            }
        }
        for value in self.map_values() {
            write!(out, " sum({})", self.value_name(value.text))?;
        }
        if self.has_max {
            out.write_str(" max(duration)")?;
        }
        if let Some(begin) = begin {
            let keys = LinePart {
                text: begin.keys,
                at: 0,
            };
            let mine = || self.map_keys().filter(|key| !key.text.starts_with('$'));
            let count = mine().count();
            let has_buckets = mine().any(|key| key.text.ends_with(BUCKETS));
            if count != keys.items().count() || count > MAX_MATCHED || has_buckets {
                let at = self.keys.at;
                let reason = HistReason::NoMatch;
                return Err(WriteError::Wrong(Error { at, reason }));
            }
            write!(out, " from {}:{} match ", begin.event.0, begin.event.1)?;
            for (place, key) in keys.items().enumerate() {
                write!(out, "{}{}", separator(place), map_name(base(key.text)))?;
            }
            out.write_str(":")?;
            for (place, key) in mine().enumerate() {
                write!(out, "{}{}", separator(place), map_name(base(key.text)))?;
            }
        }
        write!(out, " size {}", self.size)?;
        if let Some(filter) = self.filter {
            write!(out, " if {}", filter.text)?;
        }
        Ok(())
    }

    /// Name of a value in a map.
    fn value_name<'b>(&self, name: &'b str) -> &'b str {
        match self.is_duration(name) {
            true => super::map::DURATION,
            false => map_name(name),
        }
    }
}

/// Error of [`HistLine::write_map`].
#[derive(Clone, Copy, Debug)]
pub enum WriteError {
    /// The line is wrong.
    Wrong(Error),
    /// The map could not be written.
    Write,
}

impl From<fmt::Error> for WriteError {
    fn from(_: fmt::Error) -> Self {
        Self::Write
    }
}

/// The separator before an item of a list.
fn separator(place: usize) -> &'static str {
    match place {
        0 => "",
        _ => ",",
    }
}

/// A key without its modifier.
pub fn base(key: &str) -> &str {
    let key = key.strip_suffix(BUCKETS).unwrap_or(key);
    key.strip_suffix(HEX).unwrap_or(key)
}

/// Whether a key is shown in hexadecimal.
pub fn is_hex(key: &str) -> bool {
    key.ends_with(HEX)
}

/// A map's name of a value: of `common_cpu`, the context.
fn map_name(name: &str) -> &str {
    match name {
        "common_cpu" => "cpu",
        name => name,
    }
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_of_name)
}

fn ends_option(c: char) -> bool {
    c == ':' || c.is_ascii_whitespace()
}

/// Formats the histogram as ftrace shows it, without `clear`. It can be parsed again.
impl fmt::Display for HistLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let removes = if self.removes { "!" } else { "" };
        write!(f, "{removes}{HIST}:keys={}:vals={HITCOUNT}", self.keys.text)?;
        for value in self.map_values() {
            write!(f, ",{}", value.text)?;
        }
        if let Some(variable) = self.begin {
            write!(f, ":{variable}={TIME}")?;
        }
        if let Some((variable, begin)) = self.duration {
            write!(f, ":{variable}={TIME}-${}", begin.text)?;
        }
        write!(f, ":sort={}", self.sort.map_or(HITCOUNT, |sort| sort.text))?;
        write!(f, ":size={}", self.size)?;
        if let Some(name) = self.name {
            write!(f, ":name={name}")?;
        }
        if let Some(event) = self.matched {
            write!(f, ":onmatch({})", event.text)?;
        }
        if let (true, Some((variable, _))) = (self.has_max, self.duration) {
            write!(f, ":onmax(${variable})")?;
        }
        match self.filter {
            Some(filter) => write!(f, " if {}", filter.text),
            None => Ok(()),
        }
    }
}
