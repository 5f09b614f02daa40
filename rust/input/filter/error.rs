// SPDX-License-Identifier: GPL-2.0

//! Why a filter expression is refused.

use super::super::caret;
use super::{MAX_DEPTH, MAX_TEXT};
use core::fmt;

/// Why an expression is refused.
pub type Error = caret::Error<Reason>;

/// What is wrong with an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is nothing.
    Empty,
    /// No predicate where there should be one.
    NoPredicate,
    /// Behind a predicate there is something else than `&&`, `||` or `)`.
    NoConnective,
    /// `(` without `)`.
    NotClosed,
    /// `)` without `(`.
    NotOpened,
    /// More than [`MAX_DEPTH`] open parentheses.
    TooDeep,
    /// No operator behind a name.
    NoOperator,
    /// No operand behind an operator.
    NoOperand,
    /// A word that should stand in quotes.
    NoQuotes,
    /// A quote without its match.
    NotQuoted,
    /// A text of more than [`MAX_TEXT`] bytes.
    LongText,
    /// Not a number.
    NoNumber,
    /// A number that 64 bits cannot hold.
    LargeNumber,
    /// `CPUS` without `{`.
    NoBrace,
    /// `CPUS{` without `}`.
    NotBraced,
    /// An address of the kernel, which not everybody may see.
    Hidden,
    /// `.function`.
    Function,
    /// The name is of no field and no context.
    Unknown,
    /// `.ustring` behind the name of no text.
    NoText,
    /// A number or CPUs for a text.
    IsText,
    /// A text for a number.
    IsNumber,
    /// Anything but CPUs for an array.
    IsArray,
    /// A field that nothing can be compared with.
    Incomparable,
    /// An operator that texts do not have.
    TextOperator,
    /// `~` for a number.
    NumberOperator,
    /// An operator that CPUs do not have.
    CpusOperator,
    /// The field has no such value.
    OutOfRange {
        /// Whether the field is signed.
        is_signed: bool,
        /// Its width: 1 to 64.
        bits: u8,
    },
    /// Not a list of CPUs.
    NoCpuList,
    /// The list names none.
    NoCpu,
    /// There is no such CPU.
    LargeCpu {
        /// The CPUs are below that.
        cpus: u32,
    },
    /// More comparisons than the program has room for.
    LongProgram,
    /// More texts and CPUs than the program has room for.
    LongTexts,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::Empty => "the expression is empty",
            Self::NoPredicate => "expected the name of a field or context, '!' or '('",
            Self::NoConnective => "expected '&&', '||', ')' or the end",
            Self::NotClosed => "this '(' has no ')'",
            Self::NotOpened => "this ')' has no '('",
            Self::TooDeep => return write!(f, "more than {MAX_DEPTH} '(' inside each other"),
            Self::NoOperator => "expected an operator: ==, !=, <, <=, >, >=, & or ~",
            Self::NoOperand => "expected a number, a text in quotes or CPUS{...}",
            Self::NoQuotes => "a text needs quotes; without, expected a number or CPUS{...}",
            Self::NotQuoted => "this quote has no second one",
            Self::LongText => return write!(f, "the text has more than {MAX_TEXT} bytes"),
            Self::NoNumber => "this is no number: decimal, 0x... or, after a 0, octal",
            Self::LargeNumber => "the number has more than 64 bits",
            Self::NoBrace => "expected '{' and a list of CPUs",
            Self::NotBraced => "this list of CPUs has no '}'",
            Self::Hidden => "this is an address of the kernel: to look at it takes CAP_SYSLOG",
            Self::Function => "names of functions are not known here: compare with an address",
            Self::Unknown => "the event has no such field, and there is no such context",
            Self::NoText => "this is no text: it cannot have '.ustring'",
            Self::IsText => "this is a text: compare it with a text in quotes",
            Self::IsNumber => "this is a number: compare it with a number or CPUS{...}",
            Self::IsArray => "this is an array of numbers: compare it, as a set, with CPUS{...}",
            Self::Incomparable => "this cannot be compared",
            Self::TextOperator => "a text has no such operator, only ==, != and ~",
            Self::NumberOperator => {
                "a number has no such operator, only ==, !=, <, <=, >, >= and &"
            }
            Self::CpusOperator => "CPUs have no such operator, only ==, != and &",
            Self::OutOfRange { is_signed, bits } => return write_range(f, is_signed, bits),
            Self::NoCpuList => "this is no list of CPUs, such as 0-3,5",
            Self::NoCpu => "there is no CPU in this list",
            Self::LargeCpu { cpus } => {
                return write!(f, "the last CPU is {}", cpus.saturating_sub(1))
            }
            Self::LongProgram => "the expression has too many comparisons",
            Self::LongTexts => "the expression has too many texts and lists of CPUs",
        })
    }
}

fn write_range(f: &mut fmt::Formatter<'_>, is_signed: bool, bits: u8) -> fmt::Result {
    let unused = 64_u32.saturating_sub(bits.into());
    f.write_str("the number is out of range: ")?;
    if is_signed {
        let most = i64::MAX.wrapping_shr(unused);
        let hex = u64::MAX.wrapping_shr(unused);
        write!(f, "{} to {most}, or 0x0 to {hex:#x}", !most)
    } else {
        write!(f, "0 to {}", u64::MAX.wrapping_shr(unused))
    }
}
