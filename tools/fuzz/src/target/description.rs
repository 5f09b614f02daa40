// SPDX-License-Identifier: GPL-2.0

//! The description of a trace, from the module's writer to the tools' reader: clock,
//! environment and events come out as they went in, whatever stands in their texts.

use arbitrary::{Arbitrary, Result, Unstructured};
use rtrace_abi::header::Layout;
use rtrace_abi::schema::{Field, FieldType};
use rtrace_abi::tsdl::{self, Clock, Environment};
use std::collections::BTreeMap;
use synthetic::{uuid_text, UUID};
use trace::ctf::{FieldLayout, Metadata};

/// The texts that the environment has, by their keys.
const KEYS: [&str; 6] = [
    "hostname",
    "kernel_release",
    "kernel_version",
    "trace_name",
    "trace_creation_datetime",
    "rtrace_version",
];

/// More events than this take time and show nothing more.
const EVENTS: usize = 20;

#[derive(Arbitrary, Debug)]
struct Description {
    large: bool,
    frequency: u64,
    offset_s: i64,
    offset: u64,
    clock: String,
    env: [String; KEYS.len()],
    events: Vec<Event>,
}

#[derive(Arbitrary, Debug)]
struct Event {
    id: u32,
    name: String,
    fields: Vec<(Identifier, Type)>,
}

/// A name in C.
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

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Type {
    Unsigned(Bits),
    Signed(Bits),
    Hex(Bits),
    Text(u8),
    String,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Bits {
    B8 = 8,
    B16 = 16,
    B32 = 32,
    B64 = 64,
}

impl From<Type> for FieldType {
    fn from(ty: Type) -> Self {
        match ty {
            Type::Unsigned(bits) => Self::Unsigned(bits as u8),
            Type::Signed(bits) => Self::Signed(bits as u8),
            Type::Hex(bits) => Self::Hex(bits as u8),
            Type::Text(bytes) => Self::Text(bytes),
            Type::String => Self::String,
        }
    }
}

pub fn check(data: &[u8]) {
    let Ok(mut description) = Description::arbitrary(&mut Unstructured::new(data)) else {
        return;
    };
    // The module's own invariants: a clock that ticks, and one event to an id.
    description.frequency = description.frequency.max(1);
    let events: BTreeMap<u32, &Event> = description
        .events
        .iter()
        .take(EVENTS)
        .map(|event| (event.id, event))
        .collect();

    let metadata = Metadata::parse(&written(&description, &events)).expect("it is understood");

    assert_eq!(metadata.uuid.into_bytes(), UUID);
    assert_eq!(metadata.layout, layout(&description));
    assert_eq!(metadata.clock.frequency, description.frequency);
    assert_eq!(metadata.clock.offset_s, description.offset_s);
    assert_eq!(metadata.clock.offset, description.offset);
    for (key, text) in KEYS.into_iter().zip(&description.env) {
        assert_eq!(metadata.env.get(key), Some(text), "{key}");
    }
    assert_eq!(metadata.events.len(), events.len());
    for (id, event) in events {
        let found = &metadata.events[&id];
        assert_eq!((found.id, &found.name), (id, &event.name));
        let fields: Vec<_> = event.fields.iter().map(expected).collect();
        assert_eq!(found.fields, fields);
        let size: Option<usize> = fields.iter().map(|field| field.ty.size()).sum();
        assert_eq!(found.size, size);
    }
}

fn layout(description: &Description) -> Layout {
    if description.large {
        Layout::Large
    } else {
        Layout::Compact
    }
}

fn expected((name, ty): &(Identifier, Type)) -> FieldLayout {
    FieldLayout {
        name: name.0.clone(),
        ty: FieldType::from(*ty),
    }
}

fn written(description: &Description, events: &BTreeMap<u32, &Event>) -> String {
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
    };
    let mut out = String::new();
    tsdl::preamble(&mut out, &uuid, layout(description), &clock, &env).expect("a String");
    for (id, event) in events {
        let fields = event.fields.iter().map(|(name, ty)| Field {
            name: &name.0,
            ty: FieldType::from(*ty),
        });
        tsdl::event(&mut out, *id, &event.name, fields).expect("a String");
    }
    out
}
