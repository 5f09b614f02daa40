// SPDX-License-Identifier: GPL-2.0

//! The tokens of TSDL.

use std::iter::Peekable;
use std::str::Chars;
use system::{Error, Result};

/// A token, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) line: usize,
}

/// The kind of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// An identifier, a number, or names joined by dots.
    Word(String),
    /// A string literal's contents.
    Text(String),
    /// Any other single character; `:=` is `:` and `=`.
    Mark(char),
}

/// Splits a text into tokens. Skips comments.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    rest: Peekable<Chars<'a>>,
    line: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            rest: text.chars().peekable(),
            line: 1,
        }
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.rest.next();
        if c == Some('\n') {
            self.line += 1;
        }
        c
    }

    fn error(&self, what: &str) -> Error {
        Error::Metadata {
            line: self.line,
            what: what.to_owned(),
        }
    }

    /// Skips the rest of a comment, after its first slash.
    fn comment(&mut self) -> Result<()> {
        match self.bump() {
            Some('*') => {
                let mut before = ' ';
                loop {
                    match self.bump() {
                        Some('/') if before == '*' => return Ok(()),
                        Some(c) => before = c,
                        None => return Err(self.error("a comment without end")),
                    }
                }
            }
            Some('/') => {
                while self.bump().is_some_and(|c| c != '\n') {}
                Ok(())
            }
            _ => Err(self.error("a stray `/`")),
        }
    }

    /// The rest of a string literal, after its opening quote.
    fn text(&mut self) -> Result<TokenKind> {
        let mut text = String::new();
        loop {
            match self.bump() {
                Some('"') => return Ok(TokenKind::Text(text)),
                Some('\\') => match self.bump() {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some(c) => text.push(c),
                    None => return Err(self.error("a string without end")),
                },
                Some(c) => text.push(c),
                None => return Err(self.error("a string without end")),
            }
        }
    }

    /// Whether the rest begins with the three dots of a range.
    fn is_range(&self) -> bool {
        self.rest.clone().take(3).eq("...".chars())
    }

    fn word(&mut self, first: char) -> TokenKind {
        let mut word = String::from(first);
        if first == '.' && self.rest.clone().take(2).eq("..".chars()) {
            self.rest.nth(1);
            return TokenKind::Word("...".to_owned());
        }
        while let Some(&c) = self.rest.peek() {
            // A range may have no blanks around its dots.
            if !is_word(c) || c == '.' && self.is_range() {
                break;
            }
            word.push(c);
            self.rest.next();
        }
        TokenKind::Word(word)
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '+')
}

impl Iterator for Lexer<'_> {
    type Item = Result<Token>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let c = self.bump()?;
            let line = self.line;
            let kind = match c {
                c if c.is_whitespace() => continue,
                '/' => match self.comment() {
                    Ok(()) => continue,
                    Err(e) => return Some(Err(e)),
                },
                '"' => match self.text() {
                    Ok(kind) => kind,
                    Err(e) => return Some(Err(e)),
                },
                c if is_word(c) => self.word(c),
                c => TokenKind::Mark(c),
            };
            return Some(Ok(Token { kind, line }));
        }
    }
}
