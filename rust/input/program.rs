// SPDX-License-Identifier: GPL-2.0

//! Lines of the file `program`, by which programs register events and record them.
//!
//! ```text
//! +PROVIDER:NAME [TYPE FIELD[; TYPE FIELD]...]    registers an event
//! PROVIDER:NAME [FIELD=VALUE]...                  records an event; VALUE as in `statedump`
//!
//! TYPE FIELD = u8 ... u64 NAME | s8 ... s64 NAME | x8 ... x64 NAME | char NAME     one value
//!            | TYPE NAME[COUNT]                                                    this many values
//!            | TYPE NAME[]                                                         as many as the record says
//!            | string NAME                                                         a text
//! ```
//!
//! Numbers are shown in decimal (`u`, `s` with a sign) or in hexadecimal (`x`). Several `char` are a text.

use super::caret;
use super::rest::{is_of_name, Rest};
use super::state::Fields;
use core::fmt;

/// Maximum size in bytes of the text that registers an event.
pub const TEXT_MAX: usize = 512;
/// Maximum size in bytes of a provider's name.
pub const PROVIDER_MAX: usize = 58;
/// Maximum size in bytes of an event's name.
pub const NAME_MAX: usize = 63;
/// Maximum size in bytes of a field's name.
pub const FIELD_MAX: usize = 31;
/// Maximum number of fields.
pub const FIELDS_MAX: usize = 32;
/// Maximum number of elements of an array.
pub const COUNT_MAX: u16 = 1024;

/// A line of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramLine<'a> {
    /// Registers an event.
    Register(EventDefinition<'a>),
    /// Records an event.
    Record {
        /// The event's name.
        name: ProgramName<'a>,
        /// The values of its fields.
        fields: Fields<'a>,
    },
}

/// The name of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramName<'a> {
    /// The program or library that records it: names with `.` or `-` between them.
    pub provider: &'a str,
    /// The name that the provider gave it.
    pub event: &'a str,
}

/// An event to register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventDefinition<'a> {
    /// Its name.
    pub name: ProgramName<'a>,
    fields: FieldList<'a>,
}

/// The fields of a definition, from one of them on. All of them are valid.
#[derive(Clone, Copy, Debug)]
struct FieldList<'a>(Rest<'a>);

impl PartialEq for FieldList<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.0.text, self.0.at) == (other.0.text, other.0.at)
    }
}

impl Eq for FieldList<'_> {}

/// A field to register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldLine<'a> {
    /// Position of its name in the line.
    pub at: usize,
    /// Its name.
    pub name: &'a str,
    /// Its type.
    pub ty: RegisteredType,
}

/// Type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisteredType {
    /// One value.
    One(ElementType),
    /// This many values.
    Array(ElementType, u16),
    /// As many values as the record says.
    Sequence(ElementType),
    /// A text of any length.
    String,
}

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementType {
    /// A number of this many bits, shown in decimal.
    Unsigned(u8),
    /// A signed number, shown in decimal.
    Signed(u8),
    /// A number shown in hexadecimal.
    Hex(u8),
    /// A byte of a text.
    Char,
}

/// Description of an error in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramReason {
    /// The text is too long.
    Long,
    /// The name is not valid.
    Name,
    /// The type is unknown.
    Type,
    /// The name of a field is not valid.
    Field,
    /// Two fields have the same name.
    Twice,
    /// The number of elements is not valid.
    Count,
    /// Something else than `;` or the end follows a field.
    End,
    /// There are too many fields.
    Many,
}

/// An error in a line.
pub type Error = caret::Error<ProgramReason>;

impl fmt::Display for ProgramReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Long => write!(f, "the text has more than {TEXT_MAX} bytes"),
            Self::Name => write!(
                f,
                "expected PROVIDER:NAME: C identifiers, in PROVIDER with '.' or '-' between them, of at most \
                 {PROVIDER_MAX} and {NAME_MAX} bytes"
            ),
            Self::Type => f.write_str("expected u8 to u64, s8 to s64, x8 to x64, char or string"),
            Self::Field => write!(
                f,
                "expected the name of a field: a C identifier of at most {FIELD_MAX} bytes, not beginning with '_'"
            ),
            Self::Twice => f.write_str("another field has this name"),
            Self::Count => write!(f, "expected a number from 1 to {COUNT_MAX} and ]"),
            Self::End => f.write_str("expected ; or the end"),
            Self::Many => write!(f, "the event has more than {FIELDS_MAX} fields"),
        }
    }
}

impl<'a> ProgramLine<'a> {
    /// Parses a line; [`None`] if it is empty, or a comment with `#`. Values of fields are not examined.
    pub fn parse(line: &'a str) -> Result<Option<Self>, Error> {
        let mut rest = Rest::new(line);
        rest.skip_space();
        match rest.peek() {
            None | Some('#') => return Ok(None),
            Some('+') => {
                rest.advance(1);
                return Ok(Some(Self::Register(EventDefinition::parse_rest(rest)?)));
            }
            Some(_) => {}
        }
        let (at, word, fields) = Fields::of_line(line);
        let name = ProgramName::parse(word).ok_or(Error {
            at,
            reason: ProgramReason::Name,
        })?;
        Ok(Some(Self::Record { name, fields }))
    }
}

impl<'a> ProgramName<'a> {
    /// Parses `PROVIDER:NAME`.
    fn parse(word: &'a str) -> Option<Self> {
        let (provider, event) = word.split_once(':')?;
        let is_provider = provider.split(['.', '-']).all(is_identifier);
        let is_short = provider.len() <= PROVIDER_MAX && event.len() <= NAME_MAX;
        (is_provider && is_identifier(event) && is_short).then_some(Self { provider, event })
    }
}

impl<'a> EventDefinition<'a> {
    /// Parses the text after the `+`.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        Self::parse_rest(Rest::new(text))
    }

    fn parse_rest(mut rest: Rest<'a>) -> Result<Self, Error> {
        if rest.left().len() > TEXT_MAX {
            return rest.error(ProgramReason::Long);
        }
        rest.skip_space();
        let at = rest.at;
        let word = rest.take_while(|c| !c.is_ascii_whitespace() && c != ';');
        let name = ProgramName::parse(word).ok_or(Error {
            at,
            reason: ProgramReason::Name,
        })?;
        rest.skip_space();
        let definition = Self {
            name,
            fields: FieldList(rest),
        };
        let mut fields = definition.fields;
        let mut count = 0_usize;
        while let Some(field) = fields.take()? {
            let mut known = definition.fields().take(count);
            let error = |reason| {
                let at = field.at;
                Err(Error { at, reason })
            };
            if known.any(|known| known.name == field.name) {
                return error(ProgramReason::Twice);
            }
            count = count.wrapping_add(1);
            if count > FIELDS_MAX {
                return error(ProgramReason::Many);
            }
        }
        Ok(definition)
    }

    /// The fields, in their order.
    pub fn fields(&self) -> impl Iterator<Item = FieldLine<'a>> {
        let mut fields = self.fields;
        core::iter::from_fn(move || fields.take().ok().flatten())
    }
}

impl<'a> FieldList<'a> {
    /// Returns the next field; [`None`] after the last.
    fn take(&mut self) -> Result<Option<FieldLine<'a>>, Error> {
        let rest = &mut self.0;
        if rest.peek().is_none() {
            return Ok(None);
        }
        let at = rest.at;
        let word = rest.take_while(is_of_name);
        let element = ElementType::parse(word);
        if element.is_none() && word != "string" {
            let reason = ProgramReason::Type;
            return Err(Error { at, reason });
        }
        rest.skip_space();
        let at = rest.at;
        let name = rest.take_while(is_of_name);
        if !is_identifier(name) || name.starts_with('_') || name.len() > FIELD_MAX {
            let reason = ProgramReason::Field;
            return Err(Error { at, reason });
        }
        let ty = match element {
            None => RegisteredType::String,
            Some(element) if rest.take("[") => match rest.take("]") {
                true => RegisteredType::Sequence(element),
                false => RegisteredType::Array(element, count(rest)?),
            },
            Some(element) => RegisteredType::One(element),
        };
        rest.skip_space();
        if rest.take(";") {
            rest.skip_space();
            if rest.peek().is_none() {
                return rest.error(ProgramReason::Type);
            }
        } else if rest.peek().is_some() {
            return rest.error(ProgramReason::End);
        }
        Ok(Some(FieldLine { at, name, ty }))
    }
}

/// Parses the number of elements, up to the closing bracket.
fn count(rest: &mut Rest<'_>) -> Result<u16, Error> {
    let at = rest.at;
    let digits = rest.take_while(|c| c.is_ascii_digit());
    let count = digits.parse().ok();
    match count.filter(|count| (1..=COUNT_MAX).contains(count)) {
        Some(count) if rest.take("]") => Ok(count),
        _ => Err(Error {
            at,
            reason: ProgramReason::Count,
        }),
    }
}

impl ElementType {
    /// Parses the name of a type.
    fn parse(word: &str) -> Option<Self> {
        if word == "char" {
            return Some(Self::Char);
        }
        let bits = match word.get(1..)? {
            "8" => 8,
            "16" => 16,
            "32" => 32,
            "64" => 64,
            _ => return None,
        };
        match word.get(..1)? {
            "u" => Some(Self::Unsigned(bits)),
            "s" => Some(Self::Signed(bits)),
            "x" => Some(Self::Hex(bits)),
            _ => None,
        }
    }
}

/// Returns whether a word is a C identifier.
fn is_identifier(word: &str) -> bool {
    word.chars().all(is_of_name) && word.starts_with(|c: char| !c.is_ascii_digit())
}
