// SPDX-License-Identifier: GPL-2.0

//! The `metadata` file of a trace, as it lies on disk.
//!
//! An error has a line of the text. What was understood, written by the module's own writer
//! and read again, is the same.

use rtrace_abi::schema::Field;
use rtrace_abi::tsdl::{self, Clock, Environment};
use trace::ctf::Metadata;
use trace::Error;

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
    assert_eq!(again.layout, metadata.layout);
    assert_eq!(again.clock, metadata.clock);
    assert_eq!(again.events, metadata.events);
    assert_eq!(Metadata::find_uuid(&text), Some(metadata.uuid));
}

/// As the module would write it, with an environment made up.
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
    };
    let mut out = String::new();
    tsdl::preamble(&mut out, &uuid, metadata.layout, &clock, &env).expect("a String");
    for event in metadata.events.values() {
        let fields = event.fields.iter().map(|field| Field {
            name: &field.name,
            ty: field.ty,
        });
        tsdl::event(&mut out, event.id, &event.name, fields).expect("a String");
    }
    out
}
