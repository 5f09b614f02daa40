// SPDX-License-Identifier: GPL-2.0

//! The part of the state that user space writes: lines, made into records.

use super::declared::DECLARED;
use super::StateDeclaration;
use crate::abi::schema::{FieldType, Integer, Shown};
use crate::input::caret;
use crate::input::state::{self as input, Fields, Line, StateReason, StateValue};
use crate::probe::captured::LONGEST;
use core::fmt;
use core::ops::Range;
use kernel::prelude::*;

/// The parts to record, in order.
pub(crate) struct LineParts {
    steps: KVVec<Step>,
    /// The fields of all records.
    bytes: KVVec<u8>,
}

enum Step {
    All,
    Threads,
    /// The place of the event among the declared events, and the range of its fields in `bytes`.
    Record(usize, Range<usize>),
}

/// A part to record.
pub(super) enum Part<'a> {
    /// The kernel's part, between begin and end.
    All,
    /// The kernel's part, without begin and end.
    Threads,
    /// An event, by its place among the declared events, and its fields.
    Record(usize, &'a [u8]),
}

/// Reason why lines are refused.
pub(crate) enum LineRefusal<'a> {
    /// A line is wrong.
    Wrong {
        /// The line's number, from 1.
        number: usize,
        /// The line, the place of the error, and the error.
        shown: caret::Caret<'a, Wrong>,
    },
    /// Memory is lacking.
    Memory,
}

/// The error in a line.
#[derive(Clone, Copy)]
pub(crate) enum Wrong {
    /// The line has no valid form.
    Line(StateReason),
    /// There is no event of this name.
    NoEvent,
    /// The kernel records this event itself.
    ByKernel,
    /// The name of the field that must come here.
    Expected(&'static str),
    /// The event has no further field.
    NoOther,
    /// The word is not a number, or is not in the field's range.
    Number(Integer),
    /// The word is not text.
    Text,
    /// The record would be too long.
    TooLong,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(reason) => reason.fmt(f),
            Self::NoEvent => f.write_str("the state has no such event"),
            Self::ByKernel => f.write_str("only the kernel records this event: write `threads`"),
            Self::Expected(name) => write!(f, "the field {name} is expected here"),
            Self::NoOther => f.write_str("the event has no other field"),
            Self::Number(integer) => {
                let sign = match integer.shown {
                    Shown::Signed => "a signed number",
                    _ => "a number",
                };
                write!(f, "{sign} of {} bits is expected here", integer.bits)
            }
            Self::Text => f.write_str("a text in quotation marks is expected here"),
            Self::TooLong => write!(f, "the fields have more than {LONGEST} bytes"),
        }
    }
}

impl From<kernel::alloc::AllocError> for LineRefusal<'_> {
    fn from(_: kernel::alloc::AllocError) -> Self {
        Self::Memory
    }
}

impl LineParts {
    /// Parses lines. May sleep.
    pub(crate) fn parse(text: &str) -> Result<Self, LineRefusal<'_>> {
        let mut parts = Self {
            steps: KVVec::new(),
            bytes: KVVec::new(),
        };
        for (number, line) in (1..).zip(text.split('\n')) {
            let step = match Line::parse(line) {
                None => continue,
                Some(Line::All) => Step::All,
                Some(Line::Threads) => Step::Threads,
                Some(Line::Event { name, fields }) => {
                    let begin = parts.bytes.len();
                    let place = parts.record(line, name, fields).map_err(|failed| {
                        let Failed::Wrong(error) = failed else {
                            return LineRefusal::Memory;
                        };
                        let shown = error.shown(line);
                        LineRefusal::Wrong { number, shown }
                    })?;
                    Step::Record(place, begin..parts.bytes.len())
                }
            };
            parts.steps.push(step, GFP_KERNEL)?;
        }
        Ok(parts)
    }

    /// All parts, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Part<'_>> {
        self.steps.iter().map(|step| match step {
            Step::All => Part::All,
            Step::Threads => Part::Threads,
            Step::Record(place, fields) => {
                Part::Record(*place, self.bytes.get(fields.clone()).unwrap_or(&[]))
            }
        })
    }

    /// Adds the fields of a record, and returns the place of its event.
    fn record(&mut self, line: &str, name: &str, mut fields: Fields<'_>) -> Result<usize, Failed> {
        let at = line.find(name).unwrap_or(0);
        let place = DECLARED.iter().position(|event| event.name == name);
        let place = place.ok_or(wrong(at, Wrong::NoEvent))?;
        let Some(StateDeclaration {
            fields: declared,
            by_kernel: false,
            ..
        }) = DECLARED.get(place)
        else {
            return Err(wrong(at, Wrong::ByKernel));
        };
        let begin = self.bytes.len();
        for field in *declared {
            let at = fields.at();
            let expected = wrong(at, Wrong::Expected(field.name));
            let given = fields.take()?.ok_or(expected)?;
            if given.name != field.name {
                return Err(expected);
            }
            let value_at = at + given.name.len() + 1;
            match (field.ty, given.value) {
                (FieldType::Integer(integer), StateValue::Word(word)) => {
                    let is_signed = integer.shown == Shown::Signed;
                    let value = input::number(word, integer.bits.into(), is_signed)
                        .ok_or(wrong(value_at, Wrong::Number(integer)))?;
                    let bytes = value.to_le_bytes();
                    let bytes = bytes.get(..usize::from(integer.bits / 8)).unwrap_or(&bytes);
                    self.bytes.extend_from_slice(bytes, GFP_KERNEL)?;
                }
                (FieldType::Integer(integer), StateValue::Text(_)) => {
                    return Err(wrong(value_at, Wrong::Number(integer)))
                }
                (_, StateValue::Text(text)) => {
                    for byte in Iterator::chain(text.bytes(), [0]) {
                        self.bytes.push(byte, GFP_KERNEL)?;
                    }
                }
                (_, StateValue::Word(_)) => return Err(wrong(value_at, Wrong::Text)),
            }
            if self.bytes.len() - begin > LONGEST {
                return Err(wrong(value_at, Wrong::TooLong));
            }
        }
        if !fields.is_end() {
            return Err(wrong(fields.at(), Wrong::NoOther));
        }
        Ok(place)
    }
}

/// Reason why a record could not be added.
#[derive(Clone, Copy)]
enum Failed {
    Wrong(caret::Error<Wrong>),
    Memory,
}

impl From<kernel::alloc::AllocError> for Failed {
    fn from(_: kernel::alloc::AllocError) -> Self {
        Self::Memory
    }
}

impl From<input::Error> for Failed {
    fn from(input::Error { at, reason }: input::Error) -> Self {
        wrong(at, Wrong::Line(reason))
    }
}

fn wrong(at: usize, reason: Wrong) -> Failed {
    Failed::Wrong(caret::Error { at, reason })
}
