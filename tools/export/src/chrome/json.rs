// SPDX-License-Identifier: GPL-2.0

//! An entry of Chrome's trace events.

use crate::values::{self, AsText};
use ctf::{Event, Integers, Type, Value};
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use serde::Serialize;

/// A track: a process and a thread.
pub type Track = (i64, i64);

/// An entry, as the format has it.
#[derive(Serialize)]
pub struct Entry<'a, A> {
    name: &'a str,
    ph: &'static str,
    pid: i64,
    tid: i64,
    ts: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
    args: A,
}

/// Converts nanoseconds to microseconds, the unit of the format.
fn micros(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

impl<'a, A> Entry<'a, A> {
    /// Entry of an activity between two times in nanoseconds.
    pub fn slice(name: &'a str, (pid, tid): Track, (from, to): (u64, u64), args: A) -> Self {
        Self {
            name,
            ph: "X",
            pid,
            tid,
            ts: micros(from),
            // This makes `ts + dur`, in a reader's arithmetic, the earliest begin of the next slice.
            dur: Some((micros(to) - micros(from)).max(0.0)),
            s: None,
            args,
        }
    }

    /// Entry of an event at a time in nanoseconds.
    pub fn instant(name: &'a str, (pid, tid): Track, ns: u64, args: A) -> Self {
        Self {
            name,
            ph: "i",
            pid,
            tid,
            ts: micros(ns),
            dur: None,
            s: Some("t"),
            args,
        }
    }

    /// Metadata of a track for viewers: `kind` is, for example, `thread_name`.
    pub fn about(kind: &'a str, (pid, tid): Track, args: A) -> Self {
        Self {
            name: kind,
            ph: "M",
            pid,
            tid,
            // The value has no meaning, but speedscope requires one.
            ts: 0.0,
            dur: None,
            s: None,
            args,
        }
    }
}

/// The fields of an event, and the contexts that are shown, as an object.
pub struct Fields<'a>(pub &'a Event<'a>);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (field, value) in values::fields(self.0) {
            map.serialize_entry(&field.name, &Field(&field.ty, value))?;
        }
        let contexts = self.0.contexts();
        for (field, value) in contexts.filter(|(field, _)| values::is_shown_context(field)) {
            let name = format!("context.{}", field.name);
            map.serialize_entry(&name, &Field(&field.ty, value))?;
        }
        map.end()
    }
}

/// A value. A value that is shown in hexadecimal becomes a text: JavaScript's numbers have 53 bits.
struct Field<'a>(&'a Type, Value<'a>);

impl Serialize for Field<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(ty, value) = self;
        match (value, ty) {
            (Value::Float(number), _) => serializer.serialize_f64(*number),
            (Value::Signed(number), Type::Integer(_)) => serializer.serialize_i64(*number),
            (Value::Unsigned(number), Type::Integer(integer)) if !values::is_hex(integer) => {
                serializer.serialize_u64(*number)
            }
            (Value::Integers(integers), Type::Array(element, _) | Type::Sequence(element, _)) => {
                Elements(&Type::Integer(*element), integers).serialize(serializer)
            }
            _ => serializer.collect_str(&AsText(ty, *value)),
        }
    }
}

/// Several values of one type.
struct Elements<'a>(&'a Type, &'a Integers<'a>);

impl Serialize for Elements<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        for value in *self.1 {
            seq.serialize_element(&Field(self.0, value))?;
        }
        seq.end()
    }
}
