// SPDX-License-Identifier: GPL-2.0

//! Event patterns: some, a NUL, an event's name.
//!
//! What the module makes of each word is the word, taken apart. What `rtrace list` answers to
//! the first one is what a matcher too simple to be wrong answers.

use rtrace_input::pattern::Pattern;
use trace::glob::means;

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
    let expected = match pattern.split_once(':') {
        Some((systems, names)) => matches(systems, system) && matches(names, name),
        None => matches(pattern, name) || matches(pattern, system),
    };
    assert_eq!(means(pattern, event), expected);
}

/// `row[i]`: whether the pattern so far matches the text's first `i` bytes.
fn matches(pattern: &str, text: &str) -> bool {
    let text = text.as_bytes();
    let mut row = vec![false; text.len() + 1];
    row[0] = true;
    for c in pattern.bytes() {
        let before = row.clone();
        for i in 0..row.len() {
            row[i] = match c {
                b'*' => before[i] || i > 0 && row[i - 1],
                b'?' => i > 0 && before[i - 1],
                c => i > 0 && before[i - 1] && text[i - 1] == c,
            };
        }
    }
    row[text.len()]
}
