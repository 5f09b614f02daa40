// SPDX-License-Identifier: GPL-2.0

//! How far a text was parsed, and what is left of it.

use super::caret::Error;

/// A text that is taken apart from its begin on. Nothing here panics.
#[derive(Clone, Copy, Debug)]
pub struct Rest<'a> {
    /// All of the text.
    pub text: &'a str,
    /// Where what is left begins: a byte of the text, or its end.
    pub at: usize,
}

impl<'a> Rest<'a> {
    /// All of `text` is left.
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// What is left.
    pub fn left(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    /// The character that is next.
    pub fn peek(&self) -> Option<char> {
        self.left().chars().next()
    }

    /// Passes over so many bytes.
    pub fn advance(&mut self, bytes: usize) {
        self.at = self.at.wrapping_add(bytes);
    }

    /// Takes `word` if it is next.
    pub fn take(&mut self, word: &str) -> bool {
        let is_next = self.left().starts_with(word);
        if is_next {
            self.advance(word.len());
        }
        is_next
    }

    /// Takes the characters up to the first that does not belong to them.
    pub fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let taken = self.left().split(|c| !belongs(c)).next().unwrap_or("");
        self.advance(taken.len());
        taken
    }

    /// Passes over white space.
    pub fn skip_space(&mut self) {
        self.take_while(|c| c.is_ascii_whitespace());
    }

    /// That something is wrong where what is left begins.
    pub fn error<T, R>(&self, reason: R) -> Result<T, Error<R>> {
        let at = self.at;
        Err(Error { at, reason })
    }
}

/// Whether a character may be in a C identifier.
pub fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
