// SPDX-License-Identifier: GPL-2.0

//! A text and the position up to which it is parsed.

use super::caret::Error;

/// A text that is parsed from its beginning on. No function here panics.
#[derive(Clone, Copy, Debug)]
pub struct Rest<'a> {
    /// The whole text.
    pub text: &'a str,
    /// Position of the unparsed rest: a byte of the text, or its end.
    pub at: usize,
}

impl<'a> Rest<'a> {
    /// Starts at the beginning of `text`.
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the unparsed rest.
    pub fn left(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    /// Returns the next character.
    pub fn peek(&self) -> Option<char> {
        self.left().chars().next()
    }

    /// Skips this many bytes.
    pub fn advance(&mut self, bytes: usize) {
        self.at = self.at.wrapping_add(bytes);
    }

    /// Consumes `word` if it is next.
    pub fn take(&mut self, word: &str) -> bool {
        let is_next = self.left().starts_with(word);
        if is_next {
            self.advance(word.len());
        }
        is_next
    }

    /// Consumes the characters up to the first one that is not accepted. Returns them.
    pub fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let taken = self.left().split(|c| !belongs(c)).next().unwrap_or("");
        self.advance(taken.len());
        taken
    }

    /// Skips white space.
    pub fn skip_space(&mut self) {
        self.take_while(|c| c.is_ascii_whitespace());
    }

    /// Returns an error at the current position.
    pub fn error<T, R>(&self, reason: R) -> Result<T, Error<R>> {
        let at = self.at;
        Err(Error { at, reason })
    }
}

/// Returns whether a character may be in a C identifier.
pub fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
