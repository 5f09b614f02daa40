// SPDX-License-Identifier: GPL-2.0

//! Lines of the state.
//!
//! A refusal names a place of the line. An accepted line, written again, has the same fields.

use rtrace_input::state::{number, Fields, Line, StateValue};

pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    for line in text.split('\n') {
        match Line::parse(line) {
            None => assert_eq!(line.trim_ascii(), ""),
            Some(Line::All) => assert_eq!(line.trim_ascii(), "1"),
            Some(Line::Threads) => assert_eq!(line.trim_ascii(), "threads"),
            Some(Line::Event { name, fields }) => {
                assert!(line.trim_ascii().starts_with(name));
                check_event(line, name, fields);
            }
        }
    }
}

fn check_event(line: &str, name: &str, mut fields: Fields<'_>) {
    let mut known = Vec::new();
    let mut written = name.to_owned();
    loop {
        let field = match fields.take() {
            Ok(Some(field)) => field,
            Ok(None) => break,
            Err(error) => {
                assert!(line.is_char_boundary(error.at), "{error:?}");
                assert!(!error.shown(line).to_string().is_empty());
                return;
            }
        };
        assert!(line[field.at..].starts_with(field.name));
        written.push_str(&format!(" {}=", field.name));
        let value = match field.value {
            StateValue::Word(word) => {
                if let Some(value) = number(word, 32, true) {
                    assert_eq!(i128::from(value as i64 as i32), i128::from(value as i64));
                }
                written.push_str(word);
                word.as_bytes().to_vec()
            }
            StateValue::Text(text) => {
                let bytes: Vec<u8> = text.bytes().collect();
                assert!(!bytes.contains(&0));
                written.push('"');
                for byte in &bytes {
                    written.push_str(&format!("\\x{byte:02x}"));
                }
                written.push('"');
                bytes
            }
        };
        known.push((field.name, value));
    }
    let Some(Line::Event { mut fields, .. }) = Line::parse(&written) else {
        // An event's name may turn the line into one that is not an event.
        return assert!(known.is_empty());
    };
    for (name, value) in known {
        let again = fields
            .take()
            .ok()
            .flatten()
            .expect("what is written is a field");
        let bytes = match again.value {
            StateValue::Word(word) => word.as_bytes().to_vec(),
            StateValue::Text(text) => text.bytes().collect(),
        };
        assert_eq!((again.name, bytes), (name, value));
    }
    assert!(fields.is_end());
}
