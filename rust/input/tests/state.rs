// SPDX-License-Identifier: GPL-2.0

//! Lines of the `statedump` file.

use rtrace_input::state::{number, Line, StateReason, StateValue};

/// Names of a line's fields, with the decoded values.
type Fields<'a> = Vec<(&'a str, Vec<u8>)>;

/// Returns a line's fields, or the error with its position.
fn fields(line: &str) -> Result<Fields<'_>, (usize, StateReason)> {
    let Some(Line::Event { mut fields, .. }) = Line::parse(line) else {
        panic!("'{line}' is no event");
    };
    let mut all = Vec::new();
    while let Some(field) = fields.take().map_err(|error| (error.at, error.reason))? {
        assert!(line[field.at..].starts_with(field.name));
        let value = match field.value {
            StateValue::Word(word) => word.into(),
            StateValue::Text(text) => text.bytes().collect(),
        };
        all.push((field.name, value));
    }
    assert_eq!(fields.at(), line.len());
    Ok(all)
}

#[test]
fn kinds_of_lines() {
    for empty in ["", " ", "\t \r"] {
        assert_eq!(Line::parse(empty), None);
    }
    for (line, expected) in [
        ("1", Line::All),
        (" 1 ", Line::All),
        ("threads\t", Line::Threads),
    ] {
        assert_eq!(Line::parse(line), Some(expected), "{line}");
    }
    for line in ["0", "1 2", "threads x", "a", "  a b=1"] {
        let name = line.split_whitespace().next().unwrap();
        assert!(
            matches!(Line::parse(line), Some(Line::Event { name: n, .. }) if n == name),
            "{line}"
        );
    }
}

#[test]
fn fields_and_texts() {
    assert_eq!(fields("a"), Ok(vec![]));
    assert_eq!(
        fields(" a  b=1\tc=\"x y\"  d= e=\"\" "),
        Ok(vec![
            ("b", b"1".into()),
            ("c", b"x y".into()),
            ("d", b"".into()),
            ("e", b"".into()),
        ])
    );
    assert_eq!(
        fields(r#"a b="\"\\\x01\xfFü" c==x"#),
        Ok(vec![
            ("b", b"\"\\\x01\xff\xc3\xbc".into()),
            ("c", b"=x".into()),
        ])
    );
}

#[test]
fn what_is_wrong_and_where() {
    for (line, at, reason) in [
        ("a b", 2, StateReason::NoField),
        ("a =1", 2, StateReason::NoField),
        ("a b=1 c d=2", 6, StateReason::NoField),
        ("a b=\"", 4, StateReason::NotClosed),
        ("a b=\"x c=\\\"", 4, StateReason::NotClosed),
        ("a b=\"x\\n\"", 6, StateReason::Escape),
        ("a b=\"\\x1\"", 5, StateReason::Escape),
        ("a b=\"\\", 5, StateReason::Escape),
        ("a b=\"x\\x00\"", 6, StateReason::Nul),
        ("a b=\"x\0\"", 6, StateReason::Nul),
        ("a b=\"x\"y", 7, StateReason::Joined),
    ] {
        assert_eq!(fields(line), Err((at, reason)), "{line}");
    }
}

#[test]
fn numbers_that_fit() {
    for (word, bits, is_signed, expected) in [
        ("0", 8, false, Some(0)),
        ("255", 8, false, Some(255)),
        ("256", 8, false, None),
        ("-1", 8, false, None),
        ("-0", 8, false, Some(0)),
        ("-128", 8, true, Some(-128_i64 as u64)),
        ("-129", 8, true, None),
        ("128", 8, true, None),
        ("0xffffffffffffffff", 64, false, Some(u64::MAX)),
        ("18446744073709551616", 64, false, None),
        ("-9223372036854775808", 64, true, Some(i64::MIN as u64)),
        ("0x8000000000000000", 64, true, None),
        ("007", 8, false, Some(7)),
    ] {
        assert_eq!(number(word, bits, is_signed), expected, "{word}");
    }
    for word in ["", "-", "0x", "0x+1", "+1", "--1", "1 ", "1.0", "x", "ff"] {
        assert_eq!(number(word, 32, true), None, "{word}");
    }
}
