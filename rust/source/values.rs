// SPDX-License-Identifier: GPL-2.0

//! The fields of a record, from a line of text: those of the [state](super::state), and of [programs](super::program).

use crate::abi::schema::{Field, FieldType, Integer, Shown};
use crate::input::caret;
use crate::input::state::{self as input, Fields, StateReason, StateValue};
use crate::probe::captured::LONGEST;
use core::fmt;
use kernel::prelude::*;

/// The error in a line.
#[derive(Clone, Copy)]
pub(crate) enum Wrong<'a> {
    /// The line has no valid form.
    Line(StateReason),
    /// There is no event of this name.
    NoEvent,
    /// The kernel records this event itself.
    ByKernel,
    /// The name of the field that must come here.
    Expected(&'a str),
    /// The event has no further field.
    NoOther,
    /// The word is not a number, or is not in the field's range.
    Number(Integer),
    /// The word is not text.
    Text,
    /// The word is neither a number nor a text.
    Value,
    /// The text is longer than this field.
    Longer(u32),
    /// The field is an array.
    Array,
    /// The record would be too long.
    TooLong,
}

impl fmt::Display for Wrong<'_> {
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
            Self::Value => {
                f.write_str("a number of 64 bits or a text in quotation marks is expected here")
            }
            Self::Longer(bytes) => write!(f, "the field has only {bytes} bytes"),
            Self::Array => f.write_str("an array of numbers can only be written in binary form"),
            Self::TooLong => write!(f, "the fields have more than {LONGEST} bytes"),
        }
    }
}

/// Reason why the fields of a record could not be added.
#[derive(Clone, Copy)]
pub(crate) enum Failed<'a> {
    Wrong(caret::Error<Wrong<'a>>),
    Memory,
}

impl From<kernel::alloc::AllocError> for Failed<'_> {
    fn from(_: kernel::alloc::AllocError) -> Self {
        Self::Memory
    }
}

impl From<input::Error> for Failed<'_> {
    fn from(input::Error { at, reason }: input::Error) -> Self {
        wrong(at, Wrong::Line(reason))
    }
}

/// The error at this place of the line.
pub(crate) fn wrong(at: usize, reason: Wrong<'_>) -> Failed<'_> {
    Failed::Wrong(caret::Error { at, reason })
}

/// Appends the fields of a record to `bytes`: the values in `given`, which must be those of the `declared` fields in
/// their order.
pub(crate) fn append<'a>(
    declared: impl Iterator<Item = Field<'a>>,
    given: &mut Fields<'_>,
    bytes: &mut KVVec<u8>,
) -> Result<(), Failed<'a>> {
    let begin = bytes.len();
    for field in declared {
        let at = given.at();
        let expected = wrong(at, Wrong::Expected(field.name));
        let value = given.take()?.ok_or(expected)?;
        if value.name != field.name {
            return Err(expected);
        }
        let at = at + value.name.len() + 1;
        append_value(field.ty, value.value, at, bytes)?;
        if bytes.len() - begin > LONGEST {
            return Err(wrong(at, Wrong::TooLong));
        }
    }
    if !given.is_end() {
        return Err(wrong(given.at(), Wrong::NoOther));
    }
    Ok(())
}

/// Appends one value, which is at this place of the line.
fn append_value(
    ty: FieldType<'_>,
    value: StateValue<'_>,
    at: usize,
    bytes: &mut KVVec<u8>,
) -> Result<(), Failed<'static>> {
    match (ty, value) {
        (FieldType::Integer(integer), StateValue::Word(word)) => {
            let is_signed = integer.shown == Shown::Signed;
            let value = input::number(word, integer.bits.into(), is_signed)
                .ok_or(wrong(at, Wrong::Number(integer)))?;
            let value = value.to_le_bytes();
            let value = value.get(..usize::from(integer.bits / 8)).unwrap_or(&value);
            bytes.extend_from_slice(value, GFP_KERNEL)?;
        }
        (FieldType::Integer(integer), StateValue::Text(_)) => {
            return Err(wrong(at, Wrong::Number(integer)))
        }
        (FieldType::String, StateValue::Text(text)) => {
            for byte in Iterator::chain(text.bytes(), [0]) {
                bytes.push(byte, GFP_KERNEL)?;
            }
        }
        (FieldType::Array(Integer::TEXT, size), StateValue::Text(text)) => {
            let len = text.bytes().count();
            if len > size as usize {
                return Err(wrong(at, Wrong::Longer(size)));
            }
            let padding = core::iter::repeat(0).take(size as usize - len);
            for byte in Iterator::chain(text.bytes(), padding) {
                bytes.push(byte, GFP_KERNEL)?;
            }
        }
        (FieldType::String | FieldType::Array(Integer::TEXT, _), StateValue::Word(_)) => {
            return Err(wrong(at, Wrong::Text))
        }
        _ => return Err(wrong(at, Wrong::Array)),
    }
    Ok(())
}
