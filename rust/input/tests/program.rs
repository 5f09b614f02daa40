// SPDX-License-Identifier: GPL-2.0

//! Lines of the file `program`.

use rtrace_input::program::{
    ElementType, EventDefinition, ProgramLine, ProgramName, ProgramReason, RegisteredType,
    COUNT_MAX, FIELDS_MAX, FIELD_MAX, NAME_MAX, PROVIDER_MAX, TEXT_MAX,
};
use rtrace_input::state::StateValue;

fn registered(line: &str) -> EventDefinition<'_> {
    match ProgramLine::parse(line) {
        Ok(Some(ProgramLine::Register(definition))) => definition,
        other => panic!("{line}: {other:?}"),
    }
}

fn refused(line: &str) -> (usize, ProgramReason) {
    let error = ProgramLine::parse(line).expect_err(line);
    assert!(!error.shown(line).to_string().is_empty());
    (error.at, error.reason)
}

#[test]
fn definitions() {
    let definition = registered(
        " + my-app.http:request_done u32 size; string path ;x64 flags;char comm[16];s16 v[3];u8 data[]",
    );
    let name = ProgramName {
        provider: "my-app.http",
        event: "request_done",
    };
    assert_eq!(definition.name, name);
    let fields: Vec<_> = definition.fields().map(|f| (f.name, f.ty)).collect();
    let expected = [
        ("size", RegisteredType::One(ElementType::Unsigned(32))),
        ("path", RegisteredType::String),
        ("flags", RegisteredType::One(ElementType::Hex(64))),
        ("comm", RegisteredType::Array(ElementType::Char, 16)),
        ("v", RegisteredType::Array(ElementType::Signed(16), 3)),
        ("data", RegisteredType::Sequence(ElementType::Unsigned(8))),
    ];
    assert_eq!(fields, expected);
    let without = registered("+a:b");
    assert_eq!(without.fields().count(), 0);
    assert_eq!(EventDefinition::parse("a:b").unwrap().name, without.name);
}

#[test]
fn records() {
    let Ok(Some(ProgramLine::Record { name, mut fields })) =
        ProgramLine::parse("  a.b:c size=5 path=\"x y\"")
    else {
        panic!("no record");
    };
    assert_eq!((name.provider, name.event), ("a.b", "c"));
    let size = fields.take().unwrap().unwrap();
    assert_eq!((size.name, size.value), ("size", StateValue::Word("5")));
    let path = fields.take().unwrap().unwrap();
    let StateValue::Text(text) = path.value else {
        panic!("no text");
    };
    assert_eq!(text.bytes().collect::<Vec<_>>(), b"x y");
    assert!(fields.is_end());
    for empty in ["", " \t", "# a:b", "  #"] {
        assert_eq!(ProgramLine::parse(empty), Ok(None));
    }
}

#[test]
fn refusals_name_the_place() {
    use ProgramReason::{Count, End, Field, Long, Many, Name, Twice, Type};
    for (line, at, reason) in [
        ("a", 0, Name),
        ("  a x=1", 2, Name),
        ("a:", 0, Name),
        (":b", 0, Name),
        ("a:b:c", 0, Name),
        ("a..b:c", 0, Name),
        ("a:b.c", 0, Name),
        ("1a:b", 0, Name),
        ("+", 1, Name),
        ("+a:b;", 5 - 1, Type),
        ("+a u32 b", 1, Name),
        ("+a:b u31 c", 5, Type),
        ("+a:b u3\u{e9} c", 5, Type),
        ("+a:b u32", 8, Field),
        ("+a:b u32 _c", 9, Field),
        ("+a:b u32 1c", 9, Field),
        ("+a:b u32 c;", 11, Type),
        ("+a:b u32 c u32 d", 11, End),
        ("+a:b u32 c[0]", 11, Count),
        ("+a:b u32 c[1", 11, Count),
        ("+a:b u32 c[x]", 11, Count),
        ("+a:b u32 c[1025]", 11, Count),
        ("+a:b string c[]", 13, End),
        ("+a:b u32 c; s8 c", 15, Twice),
    ] {
        assert_eq!(refused(line), (at, reason), "{line}");
    }
    let many = |count| {
        let fields: Vec<_> = (0..count).map(|i| format!("u8 f{i}")).collect();
        format!("+a:b {}", fields.join(";"))
    };
    assert_eq!(registered(&many(FIELDS_MAX)).fields().count(), FIELDS_MAX);
    assert_eq!(refused(&many(FIELDS_MAX + 1)).1, Many);
    let long = |len| format!("+a:b u8 c{}", " ".repeat(len - "a:b u8 c".len()));
    registered(&long(TEXT_MAX));
    assert_eq!(refused(&long(TEXT_MAX + 1)).1, Long);
    for (provider, event, field) in [
        (PROVIDER_MAX + 1, 1, 1),
        (1, NAME_MAX + 1, 1),
        (1, 1, FIELD_MAX + 1),
    ] {
        let name = |len: usize| "n".repeat(len);
        let line = format!("+{}:{} u8 {}", name(provider), name(event), name(field));
        refused(&line);
    }
    registered(&format!(
        "+{}:{} u8 {}[{COUNT_MAX}]",
        "p".repeat(PROVIDER_MAX),
        "e".repeat(NAME_MAX),
        "f".repeat(FIELD_MAX)
    ));
}
