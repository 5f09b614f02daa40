// SPDX-License-Identifier: GPL-2.0

//! Tests that the parser reads the text of `rust/abi/tsdl.rs`.

use super::*;
use proptest::prelude::*;
use rtrace_abi::schema::{Field, FieldType};
use rtrace_abi::tsdl;

const UUID: &str = "00112233-4455-6677-8899-aabbccddeeff";

fn text(layout: Layout, events: &[(u32, &str, Vec<Field<'_>>)]) -> String {
    let clock = tsdl::Clock {
        name: "monotonic",
        description: "a \"clock\"",
        uuid: UUID,
        frequency: 2_400_000_000,
        offset_s: 1_700_000_000,
        offset: 1_200_000_000,
    };
    let env = tsdl::Environment {
        hostname: "a\\b \"c\"",
        kernel_release: "7.2.12",
        kernel_version: "#1 SMP { } ;",
        trace_name: "default",
        created: "20261120T230000Z",
        rtrace_version: "0.1.0",
        architecture: Some("aarch64"),
        tasks: Some(tsdl::CGROUPS),
    };
    let mut out = String::new();
    tsdl::preamble(&mut out, UUID, &[layout], &clock, &env).unwrap();
    tsdl::stream(&mut out, 0, &[layout], clock.name, std::iter::empty()).unwrap();
    for (id, name, fields) in events {
        tsdl::event(&mut out, 0, *id, name, fields.iter().copied()).unwrap();
    }
    out
}

/// The parsed form of a field that was written.
fn expected(field: &Field<'_>, all: &[Field<'_>]) -> FieldLayout {
    let ty = match field.ty {
        FieldType::Integer(integer) => Type::Integer(integer),
        FieldType::Enumeration(integer, labels) => {
            let labels = labels.iter().map(|label| Label {
                name: label.name.to_owned(),
                first: label.first,
                last: label.last,
            });
            Type::Enumeration(integer, labels.collect())
        }
        FieldType::Array(element, length) => Type::Array(element, length),
        FieldType::Sequence(element, length) => {
            let length = all.iter().position(|field| field.name == length);
            Type::Sequence(element, length.unwrap())
        }
        FieldType::String => Type::String,
    };
    FieldLayout {
        name: field.name.to_owned(),
        ty,
    }
}

#[test]
fn round_trip() {
    let types = [
        FieldType::unsigned(8),
        FieldType::unsigned(64),
        FieldType::signed(16),
        FieldType::signed(32),
        FieldType::hex(64),
        FieldType::text(16),
        FieldType::String,
    ];
    let names = ["a", "_b", "int", "struct", "comm", "integer", "string"];
    let fields = names.iter().zip(types);
    let mut fields: Vec<_> = fields.map(|(&name, ty)| Field { name, ty }).collect();
    fields.extend(synthetic::every_type());
    for layout in [Layout::Compact, Layout::Large] {
        let text = text(
            layout,
            &[
                (0, "sched_switch", fields.clone()),
                (70_000, "empty", vec![]),
            ],
        );
        let metadata = Metadata::parse(&text).unwrap();
        assert_eq!(metadata.uuid.to_string(), UUID);
        assert_eq!(Metadata::find_uuid(&text), Some(metadata.uuid));
        assert_eq!(metadata.streams.len(), 1);
        assert_eq!(metadata.streams[0].layout, layout);
        assert_eq!(metadata.clock.frequency, 2_400_000_000);
        assert_eq!(metadata.boot, UUID.parse().ok());
        assert!(metadata.boot.is_some());
        assert_eq!(metadata.clock.since_epoch(0), 1_700_000_000_500_000_000);
        let later = metadata.clock.since_epoch(7_200_000_000);
        assert_eq!(metadata.clock.value(later), 7_200_000_000);
        assert_eq!(metadata.clock.value(0), 0);
        assert_eq!(metadata.clock.nanoseconds(24), 10);
        assert_eq!(metadata.env["hostname"], "a\\b \"c\"");
        assert_eq!(metadata.env["kernel_version"], "#1 SMP { } ;");
        assert_eq!(metadata.env["tracer_minor"], "13");
        assert_eq!(metadata.env[tsdl::TASKS], tsdl::CGROUPS);
        let event = &metadata.streams[0].events[&0];
        assert_eq!(event.size, None);
        assert_eq!(event.field("comm"), Some(4));
        let written: Vec<_> = fields.iter().map(|f| expected(f, &fields)).collect();
        assert_eq!(event.fields, written);
        assert_eq!(metadata.streams[0].events[&70_000].size, Some(0));
    }
}

#[test]
fn channels_are_stream_classes() {
    let layouts = [Layout::Large, Layout::Compact, Layout::Large];
    let text = synthetic::metadata_of(synthetic::UUID, &layouts);
    let metadata = Metadata::parse(&text).unwrap();
    let found: Vec<_> = metadata.streams.iter().map(|class| class.layout).collect();
    assert_eq!(found, layouts);
    for (id, class) in (0..).zip(&metadata.streams) {
        assert_eq!(metadata.stream(id), Some(class));
        let switch = &class.events[&synthetic::SWITCH];
        assert_eq!((switch.stream_id, switch.id), (id, synthetic::SWITCH));
        assert_eq!(class.events.len(), metadata.streams[0].events.len());
    }
    assert_eq!(metadata.stream(3), None);
}

#[test]
fn contexts_are_of_a_stream() {
    let contexts = [
        ("procname", FieldType::text(16)),
        ("tid", FieldType::signed(32)),
    ]
    .map(|(name, ty)| Field { name, ty });
    let good = text(Layout::Compact, &[]);
    let mut stream = String::new();
    let layouts = [Layout::Compact];
    tsdl::stream(
        &mut stream,
        0,
        &layouts,
        "monotonic",
        contexts.iter().copied(),
    )
    .unwrap();
    let at = good.find("\nstream {").unwrap();
    let metadata = Metadata::parse(&format!("{}{stream}", &good[..at])).unwrap();
    let class = &metadata.streams[0];
    let written: Vec<_> = contexts.iter().map(|f| expected(f, &contexts)).collect();
    assert_eq!((&class.contexts, class.context_size), (&written, Some(20)));
    let string = stream.replace("} _tid;", "} _tid; string _name;");
    // A sequence of any length.
    let metadata = Metadata::parse(&format!("{}{string}", &good[..at])).unwrap();
    let class = &metadata.streams[0];
    assert_eq!((class.contexts.len(), class.context_size), (3, None));
}

#[test]
fn sizes_are_in_whole_bytes() {
    let bits = |bits| FieldType::Integer(Integer::unsigned(8).bit_field(bits));
    for (types, size) in [
        (vec![bits(3)], Some(1)),
        (vec![bits(3), bits(5)], Some(1)),
        (vec![bits(3), bits(6), FieldType::unsigned(8)], Some(3)),
        (
            vec![FieldType::Array(Integer::hex(64), 3), bits(1)],
            Some(25),
        ),
        (vec![FieldType::text(0)], Some(0)),
        (vec![FieldType::unsigned(8), FieldType::String], None),
    ] {
        let fields = types.iter().map(|&ty| Field { name: "f", ty }).collect();
        let text = text(Layout::Compact, &[(1, "e", fields)]);
        let metadata = Metadata::parse(&text).unwrap();
        assert_eq!(metadata.streams[0].events[&1].size, size, "{types:?}");
    }
}

#[test]
fn errors_have_lines() {
    let good = text(Layout::Compact, &[(1, "e", vec![])]);
    let twice = format!("{good}event {{ name = \"f\"; id = 1; }};\n");
    let error = Metadata::parse(&twice).unwrap_err().to_string();
    let line = good.lines().count() + 1;
    assert!(
        error.contains(&format!("line {line}: event id 1")),
        "{error}"
    );
    for (text, words) in [
        ("", "line 1: `trace` is missing"),
        (
            "trace { byte_order = le; uuid = \"00112233-4455-6677-8899-aabbccddeeff\"; };\nclock { };",
            "line 2: `stream` is missing",
        ),
        ("stream { id = 1; };", "line 1: stream id 1, expected 0"),
        ("\nstream { id = x; };", "line 2: stream id x, expected 0"),
        ("stream { id = 0; };", "stream 0: `event.header` is missing"),
        (
            "stream { event.header := struct event_header_odd; };",
            "stream 0: there is no `struct event_header_odd`",
        ),
        (
            "event { name = \"e\"; id = 3; stream_id = 1; };",
            "line 1: event id 3 of an unknown stream 1",
        ),
        (
            "event { name = \"e\"; id = 3; stream_id = -1; };",
            "event `e`: no valid stream_id",
        ),
        ("trace {", "without end"),
        ("}", "stray"),
        ("trace { byte_order = be; };", "byte_order"),
        ("clock { freq = 0; };", "frequency 0"),
        (
            "event { name = \"e\"; id = 0; fields := struct { float x; }; };",
            "unknown form",
        ),
        (
            "event { name = \"e\"; id = 0; fields := struct {
                integer { size = 8; align = 8; signed = true; } _n;
                integer { size = 8; align = 8; signed = false; } _s[_n]; }; };",
            "line 3: field `_s` is of an unknown type",
        ),
        (
            "event { name = \"e\"; id = 0; fields := struct {
                enum : integer { size = 8; align = 8; signed = false; } { \"a\" = -1 } _x; }; };",
            "line 2: field `_x` is of an unknown type",
        ),
        (
            "event { name = \"e\"; id = 0; fields := struct {
                integer { size = 65; align = 1; signed = false; } _x; }; };",
            "line 2: field `_x` is of an unknown type",
        ),
    ] {
        let error = Metadata::parse(text).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
    assert!(Metadata::parse(&"{".repeat(100_000)).is_err());
}

proptest! {
    #[test]
    fn any_text_is_answered(text in "\\PC*") {
        let _ = Metadata::parse(&text);
        let _ = Metadata::find_uuid(&text);
    }

    #[test]
    fn a_damaged_text_is_answered(at in any::<prop::sample::Index>(), with in "[ -~]{0,4}") {
        let fields = vec![Field { name: "comm", ty: FieldType::text(16) }];
        let mut text = text(Layout::Large, &[(3, "e", fields)]);
        let at = at.index(text.len());
        text.replace_range(at..at + 1, &with);
        let _ = Metadata::parse(&text);
    }
}
