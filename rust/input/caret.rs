// SPDX-License-Identifier: GPL-2.0

//! Errors in a text, with their position, for humans.

use core::fmt;

/// An error in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error<R> {
    /// Position: a byte of the text, or its end.
    pub at: usize,
    /// Description of the error.
    pub reason: R,
}

impl<R> Error<R> {
    /// Formats the error, with a caret under its position in the text.
    pub fn shown(self, text: &str) -> Caret<'_, R> {
        let Self { at, reason } = self;
        Caret { text, at, reason }
    }
}

/// An error in a text, with a caret under its position:
///
/// ```text
/// sig >= 10 && dsig == 17
///              ^
/// the event has no such field, and there is no such context
/// ```
///
/// If the text has several lines, only the one with the position is shown. No newline follows.
#[derive(Clone, Copy, Debug)]
pub struct Caret<'a, R> {
    /// The text.
    pub text: &'a str,
    /// Position: a byte of the text, or its end.
    pub at: usize,
    /// Description of the error.
    pub reason: R,
}

impl<R: fmt::Display> fmt::Display for Caret<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, behind) = self
            .text
            .split_at_checked(self.at)
            .unwrap_or((self.text, ""));
        let before = before.rsplit('\n').next().unwrap_or("");
        let behind = behind.split('\n').next().unwrap_or("");
        writeln!(f, "{before}{behind}")?;
        for character in before.chars() {
            f.write_str(if character == '\t' { "\t" } else { " " })?;
        }
        write!(f, "^\n{}", self.reason)
    }
}
