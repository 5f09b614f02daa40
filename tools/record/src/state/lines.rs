// SPDX-License-Identifier: GPL-2.0

//! Lines of a session's file `statedump`: an event with its fields.

use std::fmt::{Display, Write};

/// Maximum length of a text in bytes. The kernel has this much space for all texts of an event.
const TEXT_MAX: usize = 255;

/// A line.
#[derive(Clone, Debug)]
pub struct Line(String);

impl Line {
    /// An event, without its fields.
    pub fn new(event: &str) -> Self {
        Self(event.to_owned())
    }

    /// Adds a field with a number.
    pub fn number(mut self, name: &str, value: impl Display) -> Self {
        push(&mut self.0, format_args!(" {name}={value}"));
        self
    }

    /// Adds a field with a text. The end of a long text is cut off.
    pub fn text(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        push(&mut self.0, format_args!(" {name}=\""));
        // Names in the kernel contain no NUL.
        let value = value.as_ref().split(|byte| *byte == 0).next();
        for &byte in value.unwrap_or_default().iter().take(TEXT_MAX) {
            match byte {
                b'"' | b'\\' => self.0.extend(['\\', byte.into()]),
                b' '..=b'~' => self.0.push(byte.into()),
                _ => push(&mut self.0, format_args!("\\x{byte:02x}")),
            }
        }
        self.0.push('"');
        self
    }

    /// Writes the line.
    pub fn write(&self, to: &mut String) {
        to.push_str(&self.0);
        to.push('\n');
    }
}

/// Appends text. Writing to a String cannot fail.
fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

#[cfg(test)]
impl Line {
    /// The text of the line, for tests.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtrace_input::state::{Line as Parsed, StateValue};

    /// The values that the kernel parses from a line. Numbers are as they were written.
    fn values(line: &Line) -> Vec<Vec<u8>> {
        let Some(Parsed::Event { mut fields, .. }) = Parsed::parse(line.as_str()) else {
            panic!("{line:?} is none");
        };
        let mut values = Vec::new();
        while let Some(field) = fields.take().unwrap() {
            values.push(match field.value {
                StateValue::Word(word) => word.into(),
                StateValue::Text(text) => text.bytes().collect(),
            });
        }
        values
    }

    #[test]
    fn the_kernel_reads_what_was_meant() {
        let all: Vec<u8> = (1..=u8::MAX).collect();
        let line = Line::new("event")
            .number("n", -5)
            .text("all", &all)
            .text("empty", "")
            .number("m", 7)
            .text("long", "x".repeat(300))
            .text("nul", b"ab\0cd");
        let expected: [&[u8]; 6] = [b"-5", &all, b"", b"7", &[b'x'; 255], b"ab"];
        assert_eq!(values(&line), expected);
    }
}
