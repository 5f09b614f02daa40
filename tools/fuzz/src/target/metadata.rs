// SPDX-License-Identifier: GPL-2.0

//! The `metadata` file of a trace.
//!
//! An error names a line of the text. An accepted text, written by the module's own writer and read again, is
//! the same.

use super::labels::OwnLabels;
use ctf::{EventLayout, FieldLayout, Metadata, Type};
use rtrace_abi::schema::{Field, FieldType};
use rtrace_abi::tsdl::{self, Clock, Environment};
use system::Error;

pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let _ = Metadata::find_uuid(text);
    match Metadata::parse(text) {
        Ok(metadata) => assert_read_back(&metadata),
        Err(Error::Metadata { line, .. }) => {
            assert!((1..=text.lines().count().max(1) + 1).contains(&line));
        }
        Err(other) => panic!("{other}"),
    }
}

fn assert_read_back(metadata: &Metadata) {
    let text = written(metadata);
    let again = Metadata::parse(&text).expect("what the module writes is understood");
    assert_eq!(again.uuid, metadata.uuid);
    assert_eq!(again.clock, metadata.clock);
    assert_eq!(again.streams, metadata.streams);
    assert_eq!(Metadata::find_uuid(&text), Some(metadata.uuid));
}

/// The text as the module writes it, with an invented environment.
fn written(metadata: &Metadata) -> String {
    let uuid = metadata.uuid.to_string();
    let clock = Clock {
        name: "monotonic",
        description: "made up",
        uuid: &uuid,
        frequency: metadata.clock.frequency,
        offset_s: metadata.clock.offset_s,
        offset: metadata.clock.offset,
    };
    let env = Environment {
        hostname: "",
        kernel_release: "",
        kernel_version: "",
        trace_name: "",
        created: "",
        rtrace_version: "",
        architecture: None,
        tasks: None,
    };
    let mut out = String::new();
    let layouts: Vec<_> = metadata.streams.iter().map(|class| class.layout).collect();
    tsdl::preamble(&mut out, &uuid, &layouts, &clock, &env).expect("a String");
    for (id, class) in (0..).zip(&metadata.streams) {
        let labels = all_labels(&class.contexts);
        let contexts = fields(&class.contexts, &labels);
        tsdl::stream(&mut out, id, &layouts, clock.name, contexts).expect("a String");
    }
    for event in metadata
        .streams
        .iter()
        .flat_map(|class| class.events.values())
    {
        write_event(&mut out, event);
    }
    out
}

fn write_event(out: &mut String, event: &EventLayout) {
    let labels = all_labels(&event.fields);
    let fields = fields(&event.fields, &labels);
    tsdl::event(out, event.stream_id, event.id, &event.name, fields).expect("a String");
}

/// The fields with these labels, as the module has them.
fn fields<'a>(
    fields: &'a [FieldLayout],
    labels: &'a [OwnLabels],
) -> impl Iterator<Item = Field<'a>> {
    fields.iter().zip(labels).map(|(field, labels)| Field {
        name: &field.name,
        ty: match field.ty {
            Type::Integer(integer) => FieldType::Integer(integer),
            Type::Enumeration(integer, _) => FieldType::Enumeration(integer, labels.get()),
            Type::Array(element, length) => FieldType::Array(element, length),
            Type::Sequence(element, length) => FieldType::Sequence(element, &fields[length].name),
            Type::String => FieldType::String,
            Type::Float => unreachable!("rtrace's metadata has no such type"),
        },
    })
}

fn all_labels(fields: &[FieldLayout]) -> Vec<OwnLabels> {
    fields.iter().map(|field| labels(&field.ty)).collect()
}

/// The labels of a type; empty if it is not an enumeration.
fn labels(ty: &Type) -> OwnLabels {
    let mut all = OwnLabels::default();
    if let Type::Enumeration(_, labels) = ty {
        for label in labels {
            all.push(&label.name, label.first, label.last);
        }
    }
    all
}
