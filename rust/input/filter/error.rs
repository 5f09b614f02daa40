// SPDX-License-Identifier: GPL-2.0

//! Errors in a filter expression.

use super::super::caret;
use super::{MAX_DEPTH, MAX_TEXT};
use core::fmt;

/// An error in an expression.
pub type Error = caret::Error<FilterReason>;

/// Description of an error in an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterReason {
    /// The expression is empty.
    Empty,
    /// A predicate is missing.
    NoPredicate,
    /// Text other than `&&`, `||` or `)` after a predicate.
    NoConnective,
    /// `(` without `)`.
    NotClosed,
    /// `)` without `(`.
    NotOpened,
    /// More than [`MAX_DEPTH`] nested parentheses.
    TooDeep,
    /// No operator after a name.
    NoOperator,
    /// No operand after an operator.
    NoOperand,
    /// A text without quotes.
    NoQuotes,
    /// A quote without a closing quote.
    NotQuoted,
    /// A text of more than [`MAX_TEXT`] bytes.
    LongText,
    /// Not a number.
    NoNumber,
    /// A number of more than 64 bits.
    LargeNumber,
    /// `CPUS` without `{`.
    NoBrace,
    /// `CPUS{` without `}`.
    NotBraced,
    /// An address of the kernel, which not every user may see.
    Hidden,
    /// `.function`.
    Function,
    /// The name of neither a field nor a context.
    Unknown,
    /// `.ustring` after the name of a field that is no text.
    NoText,
    /// A number or CPUs as operand for a text.
    IsText,
    /// A text as operand for a number.
    IsNumber,
    /// An operand other than CPUs for an array.
    IsArray,
    /// A field that cannot be compared.
    Incomparable,
    /// A bit field, or a field after one.
    BitField,
    /// An operator that does not exist for texts.
    TextOperator,
    /// `~` for a number.
    NumberOperator,
    /// An operator that does not exist for CPUs.
    CpusOperator,
    /// The number is out of the field's range.
    OutOfRange {
        /// Whether the field is signed.
        is_signed: bool,
        /// Width of the field: 8, 16, 32 or 64.
        bits: u8,
    },
    /// The text, or each text that the pattern matches, is longer than those of the field.
    TooLong {
        /// Number of bytes of the longest text in the field.
        most: u32,
    },
    /// Not a list of CPUs.
    NoCpuList,
    /// The list has no CPU.
    NoCpu,
    /// The machine has no such CPU.
    LargeCpu {
        /// Number of CPUs of the machine.
        cpus: u32,
    },
    /// The program has no room for more comparisons.
    LongProgram,
    /// The program has no room for more texts and CPUs.
    LongTexts,
}

/// Beginning of the message about a value that a field can never have.
pub const NEVER: &str = "the field never has this";

impl FilterReason {
    /// Whether the field can never have the value that it is compared with. This is a mistake in the expression, even if
    /// another event has a field of this name that can.
    pub const fn is_impossible(self) -> bool {
        matches!(self, Self::OutOfRange { .. } | Self::TooLong { .. })
    }
}

impl fmt::Display for FilterReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::Empty => "the expression is empty",
            Self::NoPredicate => "expected the name of a field or context, '!' or '('",
            Self::NoConnective => "expected '&&', '||', ')' or the end",
            Self::NotClosed => "this '(' has no ')'",
            Self::NotOpened => "this ')' has no '('",
            Self::TooDeep => return write!(f, "more than {MAX_DEPTH} nested '('"),
            Self::NoOperator => "expected an operator: ==, !=, <, <=, >, >=, & or ~",
            Self::NoOperand => "expected a number, a text in quotes or CPUS{...}",
            Self::NoQuotes => "a text needs quotes; without, expected a number or CPUS{...}",
            Self::NotQuoted => "this quote is not closed",
            Self::LongText => return write!(f, "the text has more than {MAX_TEXT} bytes"),
            Self::NoNumber => "this is not a number: decimal, 0x... or, after a 0, octal",
            Self::LargeNumber => "the number has more than 64 bits",
            Self::NoBrace => "expected '{' and a list of CPUs",
            Self::NotBraced => "this list of CPUs has no '}'",
            Self::Hidden => "this is an address of the kernel: CAP_SYSLOG is needed to see it",
            Self::Function => "function names are not supported here: compare with an address",
            Self::Unknown => "the event has no such field, and there is no such context",
            Self::NoText => "this is not a text: it cannot have '.ustring'",
            Self::IsText => "this is a text: compare it with a text in quotes",
            Self::IsNumber => "this is a number: compare it with a number or CPUS{...}",
            Self::IsArray => "this is an array of numbers: compare it, as a set, with CPUS{...}",
            Self::Incomparable => "this cannot be compared",
            Self::BitField => "bit fields, and the fields after them, cannot be compared",
            Self::TextOperator => "a text has no such operator, only ==, != and ~",
            Self::NumberOperator => {
                "a number has no such operator, only ==, !=, <, <=, >, >= and &"
            }
            Self::CpusOperator => "CPUs have no such operator, only ==, != and &",
            Self::OutOfRange { is_signed, bits } => return write_range(f, is_signed, bits),
            Self::TooLong { most } => {
                return write!(f, "{NEVER} text: it has at most {most} bytes")
            }
            Self::NoCpuList => "this is not a list of CPUs, such as 0-3,5",
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
    write!(f, "{NEVER} number: its range is ")?;
    if is_signed {
        let most = i64::MAX.wrapping_shr(unused);
        let hex = u64::MAX.wrapping_shr(unused);
        write!(f, "{} to {most}, or 0x0 to {hex:#x}", !most)
    } else {
        write!(f, "0 to {}", u64::MAX.wrapping_shr(unused))
    }
}
