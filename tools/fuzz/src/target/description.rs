// SPDX-License-Identifier: GPL-2.0

//! The description of a trace, from the module's writer to the tools' reader. Clock, environment and events
//! stay the same, whatever their texts are.

use super::labels::OwnLabels;
use arbitrary::{Arbitrary, Result, Unstructured};
use ctf::{FieldLayout, Metadata};
use rtrace_abi::header::Layout;
use rtrace_abi::schema::{self, Field, FieldType, Integer, Shown};
use rtrace_abi::tsdl::{self, Clock, Environment};
use std::collections::BTreeMap;
use synthetic::{uuid_text, UUID};

/// The keys of the environment whose values are texts.
const KEYS: [&str; 6] = [
    "hostname",
    "kernel_release",
    "kernel_version",
    "trace_name",
    "trace_creation_datetime",
    "rtrace_version",
];

/// More events take time and find nothing more.
const EVENTS: usize = 20;

/// More channels take time and find nothing more.
const CHANNELS: usize = 5;

#[derive(Arbitrary, Debug)]
struct Description {
    /// Whether each channel has the large event header: the first channel, and the others.
    large: (bool, Vec<bool>),
    frequency: u64,
    offset_s: i64,
    offset: u64,
    clock: String,
    env: [String; KEYS.len()],
    events: Vec<Event>,
}

#[derive(Arbitrary, Debug)]
struct Event {
    /// Selects the channel.
    channel: usize,
    id: u32,
    name: String,
    fields: Vec<(Identifier, Type)>,
}

/// A C identifier.
#[derive(Debug)]
struct Identifier(String);

impl<'a> Arbitrary<'a> for Identifier {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        const LETTERS: &[u8] = b"abcxyz_ABCXYZ0189";
        let mut name = String::new();
        for _ in 0..u.int_in_range(0..=12)? {
            name.push(char::from(*u.choose(LETTERS)?));
        }
        Ok(Self(name))
    }
}

#[derive(Arbitrary, Debug)]
enum Type {
    Integer(Number),
    /// With at least one label.
    Enumeration(Number, Label, Vec<Label>),
    Array(Number, u32),
    /// The number selects the field that has the length.
    Sequence(Number, usize),
    String,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Number {
    Bytes(Bits, Shows),
    BitField(u8, Shows),
    Text,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Bits {
    B8 = 8,
    B16 = 16,
    B32 = 32,
    B64 = 64,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Shows {
    Unsigned,
    Signed,
    Hex,
}

#[derive(Arbitrary, Debug)]
struct Label {
    name: String,
    first: u64,
    last: u64,
}

impl From<Number> for Integer {
    fn from(number: Number) -> Self {
        let shown = |bits: u8, shows| match shows {
            Shows::Unsigned => Self::unsigned(bits),
            Shows::Signed => Self::signed(bits),
            Shows::Hex => Self::hex(bits),
        };
        match number {
            Number::Bytes(bits, shows) => shown(bits as u8, shows),
            Number::BitField(bits, shows) => shown(8, shows).bit_field(bits % 64 + 1),
            Number::Text => Self::TEXT,
        }
    }
}

/// Events by channel and id.
type Events<'a> = BTreeMap<(usize, u32), &'a Event>;

pub fn check(data: &[u8]) {
    let Ok(mut description) = Description::arbitrary(&mut Unstructured::new(data)) else {
        return;
    };
    // Invariants of the module: the clock's frequency is not 0, and an id has one event.
    description.frequency = description.frequency.max(1);
    let layouts = layouts(&description);
    let events: Events<'_> = description
        .events
        .iter()
        .take(EVENTS)
        .map(|event| ((event.channel % layouts.len(), event.id), event))
        .collect();

    let metadata =
        Metadata::parse(&written(&description, &layouts, &events)).expect("it is understood");

    assert_eq!(metadata.uuid.into_bytes(), UUID);
    let found: Vec<_> = metadata.streams.iter().map(|class| class.layout).collect();
    assert_eq!(found, layouts);
    assert_eq!(metadata.clock.frequency, description.frequency);
    assert_eq!(metadata.clock.offset_s, description.offset_s);
    assert_eq!(metadata.clock.offset, description.offset);
    for (key, text) in KEYS.into_iter().zip(&description.env) {
        assert_eq!(metadata.env.get(key), Some(text), "{key}");
    }
    let found: usize = metadata
        .streams
        .iter()
        .map(|class| class.events.len())
        .sum();
    assert_eq!(found, events.len());
    for ((channel, id), event) in events {
        let found = &metadata.streams[channel].events[&id];
        assert_eq!(found.stream_id as usize, channel);
        assert_eq!((found.id, &found.name), (id, &event.name));
        let labels = labels(event);
        let fields = fields(event, &labels);
        let expected: Vec<_> = fields.iter().map(|field| read(field, &fields)).collect();
        assert_eq!(found.fields, expected);
        let bits = fields.iter().try_fold(0_usize, |end, field| {
            Some(end.next_multiple_of(field.ty.align()) + field.ty.bits()?)
        });
        assert_eq!(found.size, bits.map(|bits| bits.div_ceil(8)));
    }
}

fn layouts(description: &Description) -> Vec<Layout> {
    let (first, others) = &description.large;
    let all = std::iter::once(first).chain(others).take(CHANNELS);
    all.map(|&large| {
        if large {
            Layout::Large
        } else {
            Layout::Compact
        }
    })
    .collect()
}

/// The labels of each field; empty if it is not an enumeration.
fn labels(event: &Event) -> Vec<OwnLabels> {
    let labels = event.fields.iter().map(|(_, ty)| {
        let mut all = OwnLabels::default();
        if let Type::Enumeration(_, first, others) = ty {
            for label in std::iter::once(first).chain(others) {
                all.push(&label.name, label.first, label.last);
            }
        }
        all
    });
    labels.collect()
}

/// The fields with these labels, as the module has them.
fn fields<'a>(event: &'a Event, labels: &'a [OwnLabels]) -> Vec<Field<'a>> {
    let mut fields: Vec<Field<'_>> = Vec::new();
    for ((name, ty), labels) in event.fields.iter().zip(labels) {
        let ty = match ty {
            Type::Integer(number) => FieldType::Integer((*number).into()),
            Type::Enumeration(number, ..) => FieldType::Enumeration((*number).into(), labels.get()),
            Type::Array(number, length) => FieldType::Array((*number).into(), *length),
            Type::Sequence(number, pick) => match lengths(&fields).as_slice() {
                [] => FieldType::Array((*number).into(), 0),
                known => FieldType::Sequence((*number).into(), known[pick % known.len()]),
            },
            Type::String => FieldType::String,
        };
        fields.push(Field { name: &name.0, ty });
    }
    fields
}

/// Names of the fields that are unsigned integers.
fn lengths<'a>(fields: &[Field<'a>]) -> Vec<&'a str> {
    let names = fields.iter().map(|field| field.name);
    names
        .filter(|&name| match named(name, fields).map(|at| fields[at].ty) {
            Some(FieldType::Integer(integer)) => integer.shown != Shown::Signed,
            _ => false,
        })
        .collect()
}

fn named(name: &str, fields: &[Field<'_>]) -> Option<usize> {
    fields.iter().position(|field| field.name == name)
}

/// The field as the reader returns it.
fn read(field: &Field<'_>, all: &[Field<'_>]) -> FieldLayout {
    let label = |label: schema::Label<'_>| ctf::Label {
        name: label.name.to_owned(),
        first: label.first,
        last: label.last,
    };
    FieldLayout {
        name: field.name.to_owned(),
        ty: match field.ty {
            FieldType::Integer(integer) => ctf::Type::Integer(integer),
            FieldType::Enumeration(integer, labels) => {
                ctf::Type::Enumeration(integer, labels.iter().map(label).collect())
            }
            FieldType::Array(element, length) => ctf::Type::Array(element, length),
            FieldType::Sequence(element, length) => {
                ctf::Type::Sequence(element, named(length, all).expect("one that comes before"))
            }
            FieldType::String => ctf::Type::String,
        },
    }
}

fn written(description: &Description, layouts: &[Layout], events: &Events<'_>) -> String {
    let uuid = uuid_text(UUID);
    let clock = Clock {
        name: "monotonic",
        description: &description.clock,
        uuid: &uuid,
        frequency: description.frequency,
        offset_s: description.offset_s,
        offset: description.offset,
    };
    let [hostname, kernel_release, kernel_version, trace_name, created, rtrace_version] =
        description.env.each_ref().map(String::as_str);
    let env = Environment {
        hostname,
        kernel_release,
        kernel_version,
        trace_name,
        created,
        rtrace_version,
        architecture: None,
        tasks: None,
    };
    let mut out = String::new();
    tsdl::preamble(&mut out, &uuid, layouts, &clock, &env).expect("a String");
    for id in 0..layouts.len() as u32 {
        tsdl::stream(&mut out, id, layouts, clock.name, std::iter::empty()).expect("a String");
    }
    for ((channel, id), event) in events {
        let labels = labels(event);
        let fields = fields(event, &labels).into_iter();
        tsdl::event(&mut out, *channel as u32, *id, &event.name, fields).expect("a String");
    }
    out
}
