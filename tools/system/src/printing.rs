// SPDX-License-Identifier: GPL-2.0

//! Text of unknown origin, such as a task's name: as UTF-8, on one line, and harmless to a terminal.
//!
//! `\xHH` stands for a byte, in every output. [`text`] keeps control characters, for data such as JSON. [`printable`]
//! replaces them too, for people. [`Line`] does both.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter, Write};

/// Returns whether a terminal obeys the character instead of showing it: control characters, and characters that
/// change the direction of text.
pub fn commands_terminal(character: char) -> bool {
    let turns = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || turns
}

/// Bytes of a trace as UTF-8. A byte that is not UTF-8 becomes `\xHH`, as does a backslash before `xHH`. Different
/// bytes stay different.
pub fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\\') => Cow::Borrowed(text),
        _ => {
            let mut out = String::with_capacity(bytes.len());
            // Writing to a String cannot fail.
            let _ = escape(&mut out, bytes, |_| true);
            Cow::Owned(out)
        }
    }
}

/// A text on one line, harmless to a terminal. A character that commands a terminal becomes `\xHH`. A second call
/// changes nothing.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        push(&mut out, char);
    }
    out
}

/// Appends a character as [`printable`] does.
pub fn push(out: &mut String, char: char) {
    if commands_terminal(char) {
        // Writing to a String cannot fail.
        let _ = hex(out, char.encode_utf8(&mut [0; 4]).as_bytes());
    } else {
        out.push(char);
    }
}

/// Bytes of a trace on one line, harmless to a terminal: [`text`], made [`printable`].
pub struct Line<'a>(pub &'a [u8]);

impl Display for Line<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let is_plain = |byte: &u8| (b' '..=b'~').contains(byte) && *byte != b'\\';
        if self.0.iter().all(is_plain) {
            return self
                .0
                .utf8_chunks()
                .try_for_each(|chunk| f.write_str(chunk.valid()));
        }
        escape(f, self.0, |char| !commands_terminal(char))
    }
}

/// Writes bytes. A byte that is not UTF-8, a character that is not plain, and a backslash before `xHH` become `\xHH`.
fn escape(out: &mut impl Write, bytes: &[u8], is_plain: impl Fn(char) -> bool) -> fmt::Result {
    for chunk in bytes.utf8_chunks() {
        for (at, char) in chunk.valid().char_indices() {
            let is_plain = match char {
                '\\' => !is_escape(&chunk.valid().as_bytes()[at..]),
                char => is_plain(char),
            };
            if is_plain {
                out.write_char(char)?;
            } else {
                hex(out, char.encode_utf8(&mut [0; 4]).as_bytes())?;
            }
        }
        hex(out, chunk.invalid())?;
    }
    Ok(())
}

/// Writes bytes as `\xHH`.
pub fn hex(out: &mut impl Write, bytes: &[u8]) -> fmt::Result {
    bytes
        .iter()
        .try_for_each(|byte| write!(out, "\\x{byte:02x}"))
}

/// Whether a text begins with `\xHH`.
fn is_escape(text: &[u8]) -> bool {
    matches!(text, [b'\\', b'x', a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_bytes_stay_different() {
        let bytes = b"\xc3\xa4\xff\x1b[2J\n\\xff\\y\xe2\x80\xae";
        let data = text(bytes);
        assert_eq!(data, "\u{e4}\\xff\x1b[2J\n\\x5cxff\\y\u{202e}");
        let shown = "\u{e4}\\xff\\x1b[2J\\x0a\\x5cxff\\y\\xe2\\x80\\xae";
        assert_eq!(printable(&data), shown);
        assert_eq!(printable(shown), shown);
        assert_eq!(Line(bytes).to_string(), shown);
        assert!(matches!(text(b"a b"), Cow::Borrowed("a b")));
    }
}
