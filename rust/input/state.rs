// SPDX-License-Identifier: GPL-2.0

//! The state of the system: the lines of the `statedump` file.
//!
//! ```text
//! 1                        the kernel's part, with begin and end
//! threads                  the kernel's part only
//! EVENT [FIELD=VALUE]...   an event: all its fields, in their order
//!
//! VALUE = NUMBER | 0xNUMBER | "TEXT"
//! ```
//!
//! In a TEXT, `\"` is a quotation mark, `\\` a backslash and `\xHH` any byte except NUL.

use super::caret;
use core::fmt;

/// A line of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// The kernel's part, with begin and end.
    All,
    /// The kernel's part, without begin and end.
    Threads,
    /// An event.
    Event {
        /// Its name.
        name: &'a str,
        /// Its fields.
        fields: Fields<'a>,
    },
}

impl<'a> Line<'a> {
    /// Parses a line; [`None`] if it is empty.
    pub fn parse(line: &'a str) -> Option<Self> {
        let (_, name, fields) = Fields::of_line(line);
        match name {
            "" => None,
            "1" if fields.is_end() => Some(Self::All),
            "threads" if fields.is_end() => Some(Self::Threads),
            name => Some(Self::Event { name, fields }),
        }
    }
}

/// The fields of a line, from one of them on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields<'a> {
    line: &'a str,
    at: usize,
}

/// A field of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given<'a> {
    /// Position in the line.
    pub at: usize,
    /// Its name.
    pub name: &'a str,
    /// Its value.
    pub value: StateValue<'a>,
}

/// A field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateValue<'a> {
    /// A word, which must be a number in a valid line.
    Word(&'a str),
    /// A text.
    Text(QuotedText<'a>),
}

/// A text, as written between its quotation marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotedText<'a>(&'a str);

/// Description of an error in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateReason {
    /// A field is expected.
    NoField,
    /// A text without a closing quotation mark.
    NotClosed,
    /// An invalid escape sequence.
    Escape,
    /// A NUL in a text.
    Nul,
    /// No blank after a text.
    Joined,
}

/// An error in a line.
pub type Error = caret::Error<StateReason>;

impl fmt::Display for StateReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoField => "expected FIELD=VALUE",
            Self::NotClosed => "this text has no closing \"",
            Self::Escape => "expected \\, \" or xHH after \\",
            Self::Nul => "a text must not contain a NUL",
            Self::Joined => "expected a blank",
        })
    }
}

impl<'a> Fields<'a> {
    /// Splits a line into its first word, with the word's position, and the fields after it.
    pub fn of_line(line: &'a str) -> (usize, &'a str, Self) {
        let mut fields = Self { line, at: 0 };
        fields.skip_blanks();
        let at = fields.at;
        let word = fields.word();
        (at, word, fields)
    }

    /// Position of the next field in the line, or the line's end.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns whether no field is left.
    pub fn is_end(&self) -> bool {
        self.at == self.line.len()
    }

    /// Returns the next field; [`None`] after the last.
    pub fn take(&mut self) -> Result<Option<Given<'a>>, Error> {
        if self.is_end() {
            return Ok(None);
        }
        let at = self.at;
        let error = |at, reason| Err(Error { at, reason });
        let rest = self.rest();
        let end = rest.find(|c: char| c == '=' || c.is_ascii_whitespace());
        let name = match end.and_then(|end| rest.split_at_checked(end)) {
            Some((name, behind)) if !name.is_empty() && behind.starts_with('=') => name,
            _ => return error(at, StateReason::NoField),
        };
        self.at = at + name.len() + 1;
        let value = match self.rest().strip_prefix('"') {
            Some(quoted) => {
                let begin = self.at + 1;
                let len = checked(quoted).map_err(|Error { at, reason }| match reason {
                    StateReason::NotClosed => Error {
                        at: self.at,
                        reason,
                    },
                    _ => Error {
                        at: begin + at,
                        reason,
                    },
                })?;
                self.at = begin + len + 1;
                if !self.rest().is_empty() && !self.rest().starts_with(is_blank) {
                    return error(self.at, StateReason::Joined);
                }
                self.skip_blanks();
                StateValue::Text(QuotedText(quoted.get(..len).unwrap_or("")))
            }
            None => StateValue::Word(self.word()),
        };
        Ok(Some(Given { at, name, value }))
    }

    fn rest(&self) -> &'a str {
        self.line.get(self.at..).unwrap_or("")
    }

    /// Returns the text up to the next blank. Skips the blanks after it.
    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let len = rest.find(is_blank).unwrap_or(rest.len());
        self.at += len;
        self.skip_blanks();
        rest.get(..len).unwrap_or("")
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches(is_blank).len();
    }
}

fn is_blank(c: char) -> bool {
    c.is_ascii_whitespace()
}

/// Returns the size of a text that begins here, up to the closing `"`.
fn checked(text: &str) -> Result<usize, Error> {
    let mut rest = text.bytes().enumerate();
    while let Some((at, byte)) = rest.next() {
        let error = |reason| Err(Error { at, reason });
        match byte {
            b'"' => return Ok(at),
            0 => return error(StateReason::Nul),
            b'\\' => match escaped(|| rest.next().map(|(_, byte)| byte)) {
                Some(0) => return error(StateReason::Nul),
                Some(_) => {}
                None => return error(StateReason::Escape),
            },
            _ => {}
        }
    }
    Err(Error {
        at: text.len(),
        reason: StateReason::NotClosed,
    })
}

/// Returns the byte that the characters after a backslash stand for.
fn escaped(mut next: impl FnMut() -> Option<u8>) -> Option<u8> {
    match next()? {
        byte @ (b'\\' | b'"') => Some(byte),
        b'x' => {
            let mut digit = || char::from(next()?).to_digit(16);
            let (high, low) = (digit()?, digit()?);
            u8::try_from((high << 4) | low).ok()
        }
        _ => None,
    }
}

impl<'a> QuotedText<'a> {
    /// Iterates over the bytes that the text stands for.
    pub fn bytes(self) -> impl Iterator<Item = u8> + 'a {
        let mut rest = self.0.bytes();
        core::iter::from_fn(move || match rest.next()? {
            b'\\' => escaped(|| rest.next()),
            byte => Some(byte),
        })
    }
}

/// Parses a number that fits into this many bits, at most 64. Returns these bits.
pub fn number(word: &str, bits: u32, is_signed: bool) -> Option<u64> {
    let (is_negative, digits) = match word.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, word),
    };
    let value = match digits.strip_prefix("0x") {
        // (Otherwise the parse would accept a sign after the first one.)
        Some(digits) if digits.starts_with(|c: char| c.is_ascii_hexdigit()) => {
            u64::from_str_radix(digits, 16).ok()?
        }
        Some(_) => return None,
        None if digits.starts_with(|c: char| c.is_ascii_digit()) => digits.parse().ok()?,
        None => return None,
    };
    let value = if is_negative {
        i128::from(value).checked_neg()?
    } else {
        i128::from(value)
    };
    let values = 1_i128 << bits;
    let (least, end) = if is_signed {
        (-(values >> 1), values >> 1)
    } else {
        (0, values)
    };
    (least..end).contains(&value).then_some(value as u64)
}
