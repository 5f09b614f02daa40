// SPDX-License-Identifier: GPL-2.0

//! The tokens of TSDL.

use std::borrow::Cow;
use system::{Error, Result};

/// A token, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind<'a>,
    pub(super) line: usize,
}

/// The kind of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenKind<'a> {
    /// An identifier, a number, or names joined by dots.
    Word(Cow<'a, str>),
    /// A string literal's contents.
    Text(Cow<'a, str>),
    /// Any other single character; `:=` is `:` and `=`.
    Mark(char),
}

/// Splits a text into tokens. Skips comments.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            rest: text,
            line: 1,
        }
    }

    fn bump(&mut self) -> Option<char> {
        let mut rest = self.rest.chars();
        let c = rest.next();
        self.rest = rest.as_str();
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
    fn text(&mut self) -> Result<TokenKind<'a>> {
        if let Some((text, rest)) = self.rest.split_once('"') {
            if !text.contains('\\') {
                self.line += text.matches('\n').count();
                self.rest = rest;
                return Ok(TokenKind::Text(text.into()));
            }
        }
        let mut text = String::new();
        loop {
            match self.bump() {
                Some('"') => return Ok(TokenKind::Text(text.into())),
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

    /// The word at the begin of `from`. The dots of a range are a word, which may have no blanks around it.
    fn word(&mut self, from: &'a str) -> TokenKind<'a> {
        let is_range = |at: usize| from[at..].starts_with(RANGE);
        let ends = |(at, c): &(usize, char)| !is_word(*c) || *c == '.' && is_range(*at);
        let end = match is_range(0) {
            true => RANGE.len(),
            false => {
                let end = from.char_indices().find(ends);
                end.map_or(from.len(), |(at, _)| at)
            }
        };
        let (word, rest) = from.split_at(end);
        self.rest = rest;
        TokenKind::Word(word.into())
    }
}

/// The dots of a range.
const RANGE: &str = "...";

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '+')
}

impl<'a> Iterator for Lexer<'a> {
    type Item = Result<Token<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let from = self.rest;
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
                c if is_word(c) => self.word(from),
                c => TokenKind::Mark(c),
            };
            return Some(Ok(Token { kind, line }));
        }
    }
}
