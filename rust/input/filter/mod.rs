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
//! A name consists of letters, digits and `_`. White space may stand between any two of these but
//! in front of a suffix and inside of an operator, a number or `CPUS{`. Nothing in a text has a
//! meaning here: there is no escape.
//!
//! What a name means and which operator fits it is for the compiler to say (the room `filter`).
//! Nothing is allocated: the [`Parser`](parse::Parser) hands over one
//! element after the other.

pub mod error;
pub mod parse;

/// So many parentheses may be open at a time.
pub const MAX_DEPTH: usize = 16;

/// The longest text in an expression, in bytes, as in ftrace.
pub const MAX_TEXT: usize = 255;

/// An element of an expression. Their order is sound: the [`Parser`](parse::Parser) hands over no
/// other.
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

/// A comparison. Places are bytes of the expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predicate<'a> {
    /// The name of a field or a context.
    pub name: &'a str,
    /// Where the name begins.
    pub name_at: usize,
    /// Whether `.ustring` follows the name.
    pub is_ustring: bool,
    /// How it is compared.
    pub operator: Operator,
    /// Where the operator begins.
    pub operator_at: usize,
    /// With what.
    pub operand: Operand<'a>,
    /// Where the operand begins.
    pub operand_at: usize,
}

/// How two values are compared.
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
    /// `&`: the two have a bit in common, or a CPU.
    And,
    /// `~`: the text matches a pattern.
    Glob,
}

/// What a value is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand<'a> {
    /// A number.
    Number(Number),
    /// What stands between quotes.
    Text(&'a str),
    /// What stands between the braces of `CPUS{}`: not yet checked.
    Cpus(&'a str),
}

/// A number, as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// Whether there is a `-` in front.
    pub is_negative: bool,
    /// The number behind that.
    pub magnitude: u64,
    /// Whether it is decimal; else hexadecimal or octal.
    pub is_decimal: bool,
}
