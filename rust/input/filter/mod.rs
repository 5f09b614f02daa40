// SPDX-License-Identifier: GPL-2.0

//! Filter expressions, in ftrace's language: their grammar.
//!
//! ```text
//! expression := and { "||" and }
//! and        := not { "&&" not }
//! not        := { "!" } ( "(" expression ")" | predicate )
//! predicate  := name [ ".ustring" ] operator operand
//! operator   := "==" | "!=" | "<" | "<=" | ">" | ">=" | "&" | "~"
//! operand    := number | text | cpus
//! number     := [ "-" ] ( decimal | "0x" hexadecimal | "0" octal )
//! text       := '"' { any but '"' } '"' | "'" { any but "'" } "'"
//! cpus       := "CPUS{" list "}"
//! ```
//!
//! A name consists of letters, digits and `_`. White space may separate any two elements. But there
//! is none before a suffix, nor inside an operator, a number or `CPUS{`. No character in a text has
//! a special meaning: there is no escape.
//!
//! The compiler (the room `filter`) decides what a name means and which operator fits it. The
//! parser allocates no memory: the [`Parser`](parse::Parser) returns one element after the other.

pub mod error;
pub mod parse;

/// Maximum number of nested parentheses.
pub const MAX_DEPTH: usize = 16;

/// Maximum size of a text in an expression in bytes, as in ftrace.
pub const MAX_TEXT: usize = 255;

/// An element of an expression. The [`Parser`](parse::Parser) returns elements only in a valid
/// order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element<'a> {
    /// `(`
    Open,
    /// `)`
    Close,
    /// `!`
    Not,
    /// `&&`
    And,
    /// `||`
    Or,
    /// A comparison.
    Predicate(Predicate<'a>),
}

/// A comparison. Positions are bytes of the expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predicate<'a> {
    /// The name of a field or a context.
    pub name: &'a str,
    /// Position of the name.
    pub name_at: usize,
    /// Whether `.ustring` follows the name.
    pub is_ustring: bool,
    /// The operator.
    pub operator: Operator,
    /// Position of the operator.
    pub operator_at: usize,
    /// The operand.
    pub operand: Operand<'a>,
    /// Position of the operand.
    pub operand_at: usize,
}

/// Comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `&`: the two have a common bit, or a common CPU.
    And,
    /// `~`: the text matches a pattern.
    Glob,
}

/// Operand of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand<'a> {
    /// A number.
    Number(Number),
    /// The text between quotes.
    Text(&'a str),
    /// The text between the braces of `CPUS{}`, not yet checked.
    Cpus(&'a str),
}

/// A number, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// Whether a `-` comes before it.
    pub is_negative: bool,
    /// The number after the sign.
    pub magnitude: u64,
    /// Whether it is decimal; else hexadecimal or octal.
    pub is_decimal: bool,
}
