// SPDX-License-Identifier: GPL-2.0

//! The places of a map's keys and values in the events of a trace.

use crate::condition::Condition;
use crate::finder::{Finder, Source};
use anyhow::{anyhow, bail};
use ctf::Type;
use rtrace_abi::schema::{Integer, Shown};
use rtrace_input::map::{LinePart, MapDefinition, DURATION};
use store::maps::STACK;
use symbols::{Side, Stacks};

/// The key that is the name of the event.
const EVENT: &str = "event";

/// The context that is matched without `match`. A field of an event may be called `tid`.
const THREAD: &str = "common_pid";

/// The update of the table by an event.
pub struct Update {
    pub keys: Vec<Key>,
    /// Names of the keys that are values of the begin.
    pub begun: Vec<String>,
    pub columns: Vec<Number>,
    pub hist: Option<Number>,
    pub filter: Option<(Condition, Vec<Source>)>,
}

/// The types of an update's values: whether numbers can be negative.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Form {
    keys: Vec<Option<Shown>>,
    pub columns: Vec<bool>,
    pub hist: Option<bool>,
}

impl Update {
    /// The types of the values.
    pub fn form(&self) -> Form {
        let keys = self.keys.iter().map(|key| match key {
            Key::Value(_, ty) | Key::Begun(_, ty) => Some(shown(ty)),
            Key::Event(_) | Key::Stack(_) => None,
        });
        Form {
            keys: keys.collect(),
            columns: self.columns.iter().map(Number::is_signed).collect(),
            hist: self.hist.as_ref().map(Number::is_signed),
        }
    }

    /// Whether a key is a place in the kernel's code.
    pub fn has_places(&self) -> bool {
        let is_place = |key: &Key| match key {
            Key::Value(_, ty) | Key::Begun(_, ty) => shown(ty) == Shown::Address,
            Key::Event(_) | Key::Stack(_) => false,
        };
        self.keys.iter().any(is_place)
    }
}

/// A key.
pub enum Key {
    /// The name of the event.
    Event(String),
    Value(Source, Type),
    /// The value of the begin at this place among those that it keeps.
    Begun(usize, Type),
    /// The call stack at this place among the stacks of the map.
    Stack(usize),
}

/// The form in which values of a type are shown.
pub fn shown(ty: &Type) -> Shown {
    match ty {
        Type::Integer(integer) | Type::Enumeration(integer, _) => integer.shown,
        _ => Shown::Text,
    }
}

/// A number of an event.
pub enum Number {
    /// A value, and whether it can be negative.
    Value(Source, bool),
    /// The nanoseconds since the begin.
    Duration,
}

impl Number {
    fn is_signed(&self) -> bool {
        matches!(self, Self::Value(_, true))
    }
}

impl Finder<'_> {
    /// The update of a map, whose keys have these call stacks. A key that the event lacks is a value of `begin`.
    pub fn update(
        &self,
        map: &MapDefinition<'_>,
        stacks: &[&str],
        begin: Option<&Self>,
    ) -> anyhow::Result<Update> {
        let measures = map.begins.is_some();
        let number = |part: LinePart<'_>| self.number(part.text, measures);
        let mut begun = Vec::new();
        let keys = map.keys.into_iter().flat_map(LinePart::items);
        let keys = keys.map(|LinePart { text, .. }| {
            let key = self.key(text, stacks);
            match (key, begin) {
                (Err(error), Some(begin)) => {
                    // The error is that of the end.
                    let (_, ty) = begin.value(text).map_err(|_| error)?;
                    begun.push(text.to_owned());
                    Ok(Key::Begun(begun.len() - 1, ty))
                }
                (key, _) => key,
            }
        });
        let keys = keys.collect::<anyhow::Result<_>>()?;
        let columns = map.columns.iter().flatten().map(|(_, part)| number(*part));
        Ok(Update {
            keys,
            begun,
            columns: columns.collect::<anyhow::Result<_>>()?,
            hist: map.hist.map(number).transpose()?,
            filter: map.filter.map(|part| self.filter(part.text)).transpose()?,
        })
    }

    /// The call stacks that are keys.
    pub fn stacks(&self, names: &[&str]) -> anyhow::Result<Vec<(Side, Stacks)>> {
        let class = self.catalogue.class(self.layout);
        let stacks = names.iter().map(|name| {
            let side = match *name {
                STACK => Side::Kernel,
                _ => Side::User,
            };
            let stacks = class.map(Stacks::of).filter(|stacks| stacks.has(side));
            let stacks = stacks.ok_or_else(|| {
                let event = &self.layout.name;
                anyhow!("the trace has no call stacks `{name}` at {event}: `rtrace record -g` records them")
            })?;
            Ok((side, stacks))
        });
        stacks.collect()
    }

    /// The values of one side of `match`. Without values: the thread.
    pub fn matched(&self, names: Option<LinePart<'_>>) -> anyhow::Result<Vec<Source>> {
        let thread = LinePart {
            text: THREAD,
            at: 0,
        };
        let names = names.unwrap_or(thread).items();
        names.map(|name| Ok(self.integer(name.text)?.0)).collect()
    }

    fn number(&self, name: &str, measures: bool) -> anyhow::Result<Number> {
        if measures && name == DURATION {
            return Ok(Number::Duration);
        }
        let (source, is_signed) = self.integer(name)?;
        Ok(Number::Value(source, is_signed))
    }

    fn key(&self, name: &str, stacks: &[&str]) -> anyhow::Result<Key> {
        if name == EVENT {
            return Ok(Key::Event(self.layout.name.clone()));
        }
        if let Some(place) = stacks.iter().position(|stack| *stack == name) {
            return Ok(Key::Stack(place));
        }
        let (source, ty) = self.value(name)?;
        Ok(Key::Value(source, ty))
    }

    /// A value that can be a key.
    pub fn value(&self, name: &str) -> anyhow::Result<(Source, Type)> {
        let (source, ty) = self.find(name)?;
        let is_text = |element: &Integer| element.shown == Shown::Text;
        match &ty {
            Type::Integer(_) | Type::Enumeration(..) | Type::String => {}
            Type::Array(element, _) | Type::Sequence(element, _) if is_text(element) => {}
            _ => bail!(
                "`{name}` of {} is neither an integer nor a text",
                self.layout.name
            ),
        }
        Ok((source, ty))
    }
}
