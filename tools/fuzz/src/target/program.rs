// SPDX-License-Identifier: GPL-2.0

//! Lines of `program`.
//!
//! A refusal names a place of the line. An accepted definition, written again from its parts, is the same one. The line
//! of a record has a name, and the fields of `statedump` (the target `state` checks these).

use rtrace_input::program::{
    ElementType, EventDefinition, FieldLine, ProgramLine, RegisteredType, FIELDS_MAX,
};
use std::fmt::Write;

pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    for line in text.split('\n') {
        match ProgramLine::parse(line) {
            Ok(None) => assert!(line.trim_ascii().is_empty() || line.trim_ascii().starts_with('#')),
            Ok(Some(ProgramLine::Register(definition))) => check_definition(&definition),
            Ok(Some(ProgramLine::Record { name, fields })) => {
                let written = format!("{}:{}", name.provider, name.event);
                let begin = &line[..fields.at()];
                assert_eq!(begin.trim_ascii(), written);
            }
            Err(error) => {
                assert!(line.is_char_boundary(error.at), "{error:?}");
                assert!(!error.shown(line).to_string().is_empty());
            }
        }
    }
}

fn check_definition(definition: &EventDefinition<'_>) {
    let name = definition.name;
    let fields: Vec<_> = definition.fields().collect();
    assert!(fields.len() <= FIELDS_MAX);
    let mut names: Vec<_> = fields.iter().map(|field| field.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), fields.len(), "two fields have the same name");
    let mut written = format!("{}:{}", name.provider, name.event);
    for (at, field) in fields.iter().enumerate() {
        let separator = if at == 0 { ' ' } else { ';' };
        write!(written, "{separator}{}", shown(field)).unwrap();
    }
    let again = EventDefinition::parse(&written).expect(&written);
    assert_eq!(again.name, name);
    let parts = |field: FieldLine<'_>| (field.name.to_owned(), field.ty);
    let expected: Vec<_> = fields.into_iter().map(parts).collect();
    assert_eq!(again.fields().map(parts).collect::<Vec<_>>(), expected);
}

fn shown(field: &FieldLine<'_>) -> String {
    let element = |element| match element {
        ElementType::Unsigned(bits) => format!("u{bits}"),
        ElementType::Signed(bits) => format!("s{bits}"),
        ElementType::Hex(bits) => format!("x{bits}"),
        ElementType::Char => "char".to_owned(),
    };
    let name = field.name;
    match field.ty {
        RegisteredType::One(one) => format!("{} {name}", element(one)),
        RegisteredType::Array(one, count) => format!("{} {name}[{count}]", element(one)),
        RegisteredType::Sequence(one) => format!("{} {name}[]", element(one)),
        RegisteredType::String => format!("string {name}"),
    }
}
