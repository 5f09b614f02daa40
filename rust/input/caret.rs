// SPDX-License-Identifier: GPL-2.0

//! Where in a text something is wrong, shown to people.

use core::fmt;

/// Why a text is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error<R> {
    /// The place: a byte of the text, or its end.
    pub at: usize,
    /// What is wrong there.
    pub reason: R,
}

impl<R> Error<R> {
    /// It, under the place in the text.
    pub fn shown(self, text: &str) -> Caret<'_, R> {
        let Self { at, reason } = self;
        Caret { text, at, reason }
    }
}

/// What is wrong with a text, with a caret under the place:
///
/// ```text
/// sig >= 10 && dsig == 17
///              ^
/// the event has no such field, and there is no such context
/// ```
///
/// Of a text of several lines, only the one with the place is shown. There is no newline at the
/// end.
#[derive(Clone, Copy, Debug)]
pub struct Caret<'a, R> {
    /// The text.
    pub text: &'a str,
    /// The place: a byte of the text, or its end.
    pub at: usize,
    /// What is wrong.
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
