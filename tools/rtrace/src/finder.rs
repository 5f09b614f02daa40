// SPDX-License-Identifier: GPL-2.0

//! The places of named values in the events of a trace.

use crate::condition::{compared, in_trace, wrong, Condition, Held};
use analysis::{Catalogue, Moment};
use anyhow::bail;
use ctf::{Event, EventLayout, Type, Value};
use rtrace_abi::schema::{Integer, Shown};
use rtrace_input::filter::parse::Parser;
use rtrace_input::filter::Element;
use std::collections::BTreeSet;

/// The place of a value. A trace knows the task of most events without a context.
pub enum Source {
    Field(usize),
    Context(usize),
    Cpu,
    Thread,
    Process,
    Comm,
}

impl Source {
    /// Returns the value at an event.
    pub fn value<'e>(&self, event: &Event<'e>, now: &Moment<'e>) -> Option<Value<'e>> {
        match self {
            Self::Field(field) => event.value(*field),
            Self::Context(context) => event.context(*context),
            Self::Cpu => Some(Value::Unsigned(now.schedule.number(now.cpu).into())),
            Self::Thread => now.tid().map(Value::Signed),
            Self::Process => now.task?.process.map(Value::Signed),
            Self::Comm => now.comm().map(Value::Text),
        }
    }

    /// Returns the value at an event, for a filter.
    pub fn held(&self, event: &Event<'_>, now: &Moment<'_>) -> Option<Held> {
        // The event and the moment have different lifetimes.
        match self {
            Self::Comm => now.comm().map(|comm| Held::Text(comm.to_vec())),
            _ => Held::of(self.value(event, now)?),
        }
    }
}

/// Finds the places of values at an event.
pub struct Finder<'a> {
    pub layout: &'a EventLayout,
    pub catalogue: &'a Catalogue<'a>,
}

impl Finder<'_> {
    /// The place and type of the value with this name.
    pub fn find(&self, name: &str) -> anyhow::Result<(Source, Type)> {
        if let Some(field) = self.layout.field(name) {
            return Ok((Source::Field(field), self.layout.fields[field].ty.clone()));
        }
        let context = in_trace(name);
        let class = self.catalogue.class(self.layout);
        let place = class.and_then(|class| Some((class.context(context)?, class)));
        if let Some((place, class)) = place {
            return Ok((Source::Context(place), class.contexts[place].ty.clone()));
        }
        let number = |source, integer| Ok((source, Type::Integer(integer)));
        match context {
            "cpu_id" => number(Source::Cpu, Integer::unsigned(32)),
            "tid" => number(Source::Thread, Integer::signed(32)),
            "pid" => number(Source::Process, Integer::signed(32)),
            "procname" => Ok((Source::Comm, Type::String)),
            _ => bail!(
                "the trace has no field or context `{name}` at {}",
                self.layout.name
            ),
        }
    }

    /// The place of an integer, and whether it can be negative.
    pub fn integer(&self, name: &str) -> anyhow::Result<(Source, bool)> {
        match self.find(name)? {
            (source, Type::Integer(integer) | Type::Enumeration(integer, _)) => {
                Ok((source, integer.shown == Shown::Signed))
            }
            _ => bail!("`{name}` of {} is no integer", self.layout.name),
        }
    }

    /// A filter, and the places of its values.
    pub fn filter(&self, expression: &str) -> anyhow::Result<(Condition, Vec<Source>)> {
        let elements: Result<Vec<_>, _> = Parser::new(expression).collect();
        let elements = elements.map_err(|error| wrong(expression, error))?;
        let names = elements.iter().filter_map(|element| match element {
            Element::Predicate(predicate) => Some(predicate.name),
            _ => None,
        });
        let (mut named, mut sources) = (Vec::new(), Vec::new());
        for name in names.collect::<BTreeSet<_>>() {
            let (source, ty) = self.find(name)?;
            named.push((name, compared(&ty)));
            sources.push(source);
        }
        Ok((Condition::new(expression, &named)?, sources))
    }
}
