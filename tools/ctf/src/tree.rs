// SPDX-License-Identifier: GPL-2.0

//! The syntax of TSDL: statements that end with `;`, and blocks of statements in braces.

use crate::lexer::{Lexer, TokenKind};
use std::borrow::Cow;
use system::{Error, Result};

/// The maximum depth of blocks within blocks.
const DEPTH: usize = 16;

/// A part of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node<'a> {
    /// An identifier, a number, or names joined by dots.
    Word(Cow<'a, str>),
    /// The contents of a string literal.
    Text(Cow<'a, str>),
    /// Another character.
    Mark(char),
    /// The statements between braces.
    Block(Vec<Statement<'a>>),
}

/// The tokens between two semicolons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    /// Its parts.
    pub nodes: Vec<Node<'a>>,
    /// The line of its begin.
    pub line: usize,
}

impl<'a> Statement<'a> {
    /// An error about this statement.
    pub fn error(&self, what: impl Into<String>) -> Error {
        Error::Metadata {
            line: self.line,
            what: what.into(),
        }
    }

    /// The block of `keyword { ... }`.
    pub fn block(&self, keyword: &str) -> Option<&[Statement<'a>]> {
        match self.nodes.as_slice() {
            [Node::Word(word), Node::Block(block)] if word == keyword => Some(block),
            _ => None,
        }
    }

    /// The value of `key = value`, a word or a text.
    pub fn value(&self, key: &str) -> Option<&str> {
        match self.nodes.as_slice() {
            [Node::Word(word), Node::Mark('='), Node::Word(v) | Node::Text(v)] if word == key => {
                Some(v)
            }
            _ => None,
        }
    }
}

/// The value of the first `key = value` among statements.
pub fn value<'a>(block: &'a [Statement<'_>], key: &str) -> Option<&'a str> {
    block.iter().find_map(|statement| statement.value(key))
}

/// The value of the first `key = value` among statements, as a number.
pub fn number<T: std::str::FromStr>(block: &[Statement<'_>], key: &str) -> Option<T> {
    value(block, key)?.parse().ok()
}

/// Parses a whole text.
pub fn parse(text: &str) -> Result<Vec<Statement<'_>>> {
    let mut lexer = Lexer::new(text);
    let (block, end) = statements(&mut lexer, 0)?;
    match end {
        None => Ok(block),
        Some(line) => Err(Error::Metadata {
            line,
            what: "a stray `}`".to_owned(),
        }),
    }
}

/// Parses statements up to a closing brace, and returns its line; or to the end of the text.
fn statements<'a>(
    lexer: &mut Lexer<'a>,
    depth: usize,
) -> Result<(Vec<Statement<'a>>, Option<usize>)> {
    let mut done = Vec::new();
    let mut open = Statement {
        nodes: Vec::new(),
        line: 0,
    };
    while let Some(token) = lexer.next() {
        let token = token?;
        if open.nodes.is_empty() {
            open.line = token.line;
        }
        let node = match token.kind {
            TokenKind::Mark('{') if depth == DEPTH => {
                return Err(open.error("blocks within blocks, too deep"));
            }
            TokenKind::Mark('{') => match statements(lexer, depth + 1)? {
                (block, Some(_)) => Node::Block(block),
                (_, None) => return Err(open.error("a block without end")),
            },
            TokenKind::Mark('}') => {
                if !open.nodes.is_empty() {
                    done.push(open);
                }
                return Ok((done, Some(token.line)));
            }
            TokenKind::Mark(';') => {
                let next = Statement {
                    nodes: Vec::new(),
                    line: token.line,
                };
                done.push(std::mem::replace(&mut open, next));
                continue;
            }
            TokenKind::Mark(c) => Node::Mark(c),
            TokenKind::Word(word) => Node::Word(word),
            TokenKind::Text(text) => Node::Text(text),
        };
        open.nodes.push(node);
    }
    if open.nodes.is_empty() {
        Ok((done, None))
    } else {
        Err(open.error("the text ends within a statement"))
    }
}
