// SPDX-License-Identifier: GPL-2.0

//! Event patterns: some patterns, a NUL, an event's name.
//!
//! Each word, parsed and written again, is the same word. The first pattern matches the event if and only if a
//! simple matcher says so.

use rtrace_input::pattern::Pattern;

pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Some((patterns, event)) = text.split_once('\0') else {
        return;
    };
    for word in patterns.split_ascii_whitespace() {
        let pattern = Pattern::parse(word);
        assert_eq!(pattern.to_string(), word);
        assert!(!pattern.subsystem.is_some_and(|name| name.contains(':')));
        assert!(pattern.subsystem.is_some() || !pattern.event.contains(':'));
    }

    let pattern = patterns.split(' ').next().unwrap_or_default();
    let (system, name) = event.split_once(':').unwrap_or(("", event));
    let word = pattern.strip_prefix('!').unwrap_or(pattern);
    let expected = match word.split_once(':') {
        Some((systems, names)) => matches(systems, system) && matches(names, name),
        None => matches(word, name) || matches(word, system),
    };
    assert_eq!(Pattern::parse(pattern).matches(system, name), expected);
}

/// `row[i]`: whether the pattern so far matches the text's first `i` bytes.
fn matches(pattern: &str, text: &str) -> bool {
    let text = text.as_bytes();
    let mut row = vec![false; text.len() + 1];
    row[0] = true;
    for element in elements(pattern.as_bytes()) {
        let before = row.clone();
        for i in 0..row.len() {
            row[i] = match &element {
                Element::Star => before[i] || i > 0 && row[i - 1],
                Element::End => before[i] && i == text.len(),
                Element::OneOf(bytes) => i > 0 && before[i - 1] && bytes[usize::from(text[i - 1])],
            };
        }
    }
    row[text.len()]
}

/// An element of a pattern.
enum Element {
    /// Any bytes.
    Star,
    /// The end of the text, for a `\` at the pattern's end.
    End,
    /// One of the bytes whose value is `true`.
    OneOf(Vec<bool>),
}

fn elements(pattern: &[u8]) -> Vec<Element> {
    let one = |byte: u8| {
        let mut set = vec![false; 256];
        set[usize::from(byte)] = true;
        Element::OneOf(set)
    };
    let mut out = Vec::new();
    let mut at = 0;
    while at < pattern.len() {
        let byte = pattern[at];
        at += 1;
        out.push(match byte {
            b'*' => Element::Star,
            b'?' => Element::OneOf(vec![true; 256]),
            b'\\' if at == pattern.len() => Element::End,
            b'\\' => {
                at += 1;
                one(pattern[at - 1])
            }
            b'[' => match class(&pattern[at..]) {
                Some((set, length)) => {
                    at += length;
                    Element::OneOf(set)
                }
                None => one(byte),
            },
            _ => one(byte),
        });
    }
    out
}

/// The bytes of a class, and its length with the closing bracket; [`None`] if there is no class.
fn class(pattern: &[u8]) -> Option<(Vec<bool>, usize)> {
    let inverted = pattern.first() == Some(&b'!');
    let first = usize::from(inverted);
    let mut set = vec![inverted; 256];
    let mut at = first;
    while at == first || *pattern.get(at)? != b']' {
        let from = *pattern.get(at)?;
        let mut to = from;
        if pattern.get(at + 1) == Some(&b'-') && *pattern.get(at + 2)? != b']' {
            to = pattern[at + 2];
            at += 2;
        }
        for byte in from..=to {
            set[usize::from(byte)] = !inverted;
        }
        at += 1;
    }
    Some((set, at + 1))
}
