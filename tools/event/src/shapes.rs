// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The fields that a record of the crate `tracing` has.
//!
//! A callsite has names of fields, and no types. A value may be absent, and in generic code its type may differ from call to
//! call. So each combination of fields and types that is recorded is registered as an event of its own, with the same
//! name; rtrace allows 16 of them. Mostly there is one.

use crate::names;
use crate::record::Record;
use std::fmt;
use tracing_core::field::{Field, FieldSet, Visit};

/// Maximum number of fields of an event.
const FIELDS_MAX: usize = 32;

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bool,
    Unsigned,
    Signed,
    Text,
}

impl Kind {
    /// The type of the field.
    fn name(self) -> &'static str {
        match self {
            Self::Bool => "u8",
            Self::Unsigned => "u64",
            Self::Signed => "s64",
            Self::Text => "string",
        }
    }
}

/// The fields of a record in their order: the field's index in the callsite, and its type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    fields: [(u8, Kind); FIELDS_MAX],
    len: u8,
}

impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        self.fields() == other.fields()
    }
}

impl Shape {
    fn fields(&self) -> &[(u8, Kind)] {
        &self.fields[..self.len.into()]
    }

    /// Description of the fields, after those of `before`, for the text that registers an event.
    pub(crate) fn describe(&self, before: &[&str], set: &FieldSet) -> String {
        let mut taken: Vec<String> = Vec::new();
        let mut described = Vec::new();
        let own = self.fields().iter().map(|&(index, kind)| {
            let name = set
                .iter()
                .nth(index.into())
                .map_or("", |field| field.name());
            (kind.name(), name)
        });
        for (kind, name) in before.iter().map(|&name| ("u64", name)).chain(own) {
            let name = names::of_field(name, &taken);
            described.push(format!("{kind} {name}"));
            taken.push(name);
        }
        described.join("; ")
    }
}

/// Makes a record of values, and notes its shape.
pub(crate) struct Maker {
    pub(crate) record: Record,
    pub(crate) shape: Shape,
}

impl Maker {
    pub(crate) fn new() -> Self {
        Self {
            record: Record::new(),
            shape: Shape {
                fields: [(0, Kind::Bool); FIELDS_MAX],
                len: 0,
            },
        }
    }

    /// Notes the next field. Returns whether there may be one more.
    fn note(&mut self, field: &Field, kind: Kind) -> bool {
        let Shape { fields, len } = &mut self.shape;
        let (Some(place), Ok(index)) =
            (fields.get_mut(usize::from(*len)), field.index().try_into())
        else {
            return false;
        };
        *place = (index, kind);
        *len += 1;
        true
    }
}

impl Visit for Maker {
    fn record_bool(&mut self, field: &Field, value: bool) {
        if self.note(field, Kind::Bool) {
            self.record.put(&[value.into()]);
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if self.note(field, Kind::Unsigned) {
            self.record.put(&value.to_ne_bytes());
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        if self.note(field, Kind::Signed) {
            self.record.put(&value.to_ne_bytes());
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if self.note(field, Kind::Text) {
            self.record.put_text(value.as_bytes());
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if self.note(field, Kind::Text) {
            self.record.put_shown(format_args!("{value:?}"));
        }
    }
}
