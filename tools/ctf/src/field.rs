// SPDX-License-Identifier: GPL-2.0

//! The places of an event's fields in its payload, and their values.

use crate::layouts::Places;
use crate::layouts::{FieldLayout, Type};
use memchr::memchr;
use rtrace_abi::schema::{Integer, Shown};

/// A field's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// An unsigned integer.
    Unsigned(u64),
    /// A signed integer.
    Signed(i64),
    /// A number in floating point.
    Float(f64),
    /// A text, without its NULs.
    Text(&'a [u8]),
    /// An array or a sequence of integers.
    Integers(Integers<'a>),
}

/// Consecutive integers of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Integers<'a> {
    element: Integer,
    /// The bytes; the first one contains the first bit.
    bytes: &'a [u8],
    /// The index of that bit in the first byte.
    bit: usize,
    left: usize,
}

/// Parses a payload, field by field.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    fields: &'a [FieldLayout],
    places: &'a Places,
    payload: &'a [u8],
    /// The number of the next field.
    field: usize,
    /// The bit after the last field.
    end: usize,
    /// The integers so far, by the numbers of their fields, if one may be the length of a sequence and its place
    /// depends on the record.
    lengths: Option<Vec<u64>>,
}

impl<'a> Cursor<'a> {
    /// Begins at the first field. `places` has the places of the fields.
    pub(super) fn new(fields: &'a [FieldLayout], places: &'a Places, payload: &'a [u8]) -> Self {
        Self {
            fields,
            places,
            payload,
            field: 0,
            end: 0,
            lengths: places.has_far_lengths.then(Vec::new),
        }
    }

    /// The number of bytes of all fields. [`None`]: the payload ends before they do.
    pub(super) fn size_of_all(mut self) -> Option<usize> {
        self.skip();
        while self.field < self.fields.len() {
            self.next_value()?;
        }
        Some(self.size())
    }

    /// The value of the field with this number, if present.
    pub(super) fn nth(mut self, field: usize) -> Option<Value<'a>> {
        match (self.places.begin(field), &self.fields.get(field)?.ty) {
            // The most frequent case.
            (Some(begin), Type::Integer(integer) | Type::Enumeration(integer, _)) => {
                return number(*integer, self.payload, begin);
            }
            (Some(begin), _) => (self.field, self.end) = (field, begin),
            (None, _) => self.skip(),
        }
        while self.field < field {
            self.next_value()?;
        }
        self.next_value()
    }

    /// Goes to the last field whose place needs no other field.
    fn skip(&mut self) {
        if let (Some((field, begin)), None) = (self.places.last(), &self.lengths) {
            (self.field, self.end) = (field, begin);
        }
    }

    /// The number of bytes of the fields so far.
    fn size(&self) -> usize {
        self.end.div_ceil(8)
    }

    /// The value of the next field. [`None`]: no field is left, or the payload ends before it does.
    pub(super) fn next_value(&mut self) -> Option<Value<'a>> {
        let ty = &self.fields.get(self.field)?.ty;
        // An alignment is a power of two.
        let align = ty.align() - 1;
        let begin = (self.end + align) & !align;
        let (value, end) = match ty {
            Type::Integer(integer) | Type::Enumeration(integer, _) => (
                number(*integer, self.payload, begin)?,
                begin + usize::from(integer.bits),
            ),
            Type::Array(element, length) => self.several(*element, *length as usize, begin)?,
            Type::Sequence(element, length) => {
                let length = self.length(*length)?;
                self.several(*element, usize::try_from(length).ok()?, begin)?
            }
            Type::Float => {
                let bytes = self.payload.get(begin / 8..)?.first_chunk()?;
                (Value::Float(f64::from_le_bytes(*bytes)), begin + 64)
            }
            Type::String => {
                let bytes = self.payload.get(begin / 8..)?;
                let length = memchr(0, bytes)?;
                (Value::Text(&bytes[..length]), begin + 8 * (length + 1))
            }
        };
        if let Some(lengths) = &mut self.lengths {
            lengths.push(match value {
                Value::Unsigned(length) => length,
                _ => 0,
            });
        }
        self.field += 1;
        self.end = end;
        Some(value)
    }

    /// The value of the field with this number, which is the length of a later field.
    fn length(&self, field: usize) -> Option<u64> {
        let Some(begin) = self.places.begin(field) else {
            return self.lengths.as_ref()?.get(field).copied();
        };
        match &self.fields.get(field)?.ty {
            Type::Integer(integer) => match number(*integer, self.payload, begin)? {
                Value::Unsigned(length) => Some(length),
                _ => None,
            },
            _ => None,
        }
    }

    /// The integers that begin at a bit of the payload, and the bit after them.
    fn several(&self, element: Integer, count: usize, begin: usize) -> Option<(Value<'a>, usize)> {
        let bits = count.checked_mul(usize::from(element.bits))?;
        let end = begin.checked_add(bits)?;
        let bytes = self.payload.get(begin / 8..end.div_ceil(8))?;
        let value = match element {
            Integer::TEXT => Value::Text(until_nul(bytes)),
            element => Value::Integers(Integers {
                element,
                bytes,
                bit: begin % 8,
                left: count,
            }),
        };
        Some((value, end))
    }
}

/// The integer that begins at a bit of `bytes`. [`None`]: `bytes` ends before it does.
fn number<'a>(integer: Integer, bytes: &[u8], begin: usize) -> Option<Value<'a>> {
    let bits = u32::from(integer.bits);
    let (rest, bit) = (bytes.get(begin / 8..)?, begin % 8);
    let word = match (bit, bits) {
        (0, 8) => u64::from(*rest.first()?),
        (0, 16) => u64::from(u16::from_le_bytes(*rest.first_chunk()?)),
        (0, 32) => u64::from(u32::from_le_bytes(*rest.first_chunk()?)),
        (0, 64) => u64::from_le_bytes(*rest.first_chunk()?),
        _ => {
            // 64 bits may lie in nine bytes.
            let bytes = rest.get(..(bit + bits as usize).div_ceil(8))?;
            let word = bytes
                .iter()
                .rev()
                .fold(0, |word: u128, &byte| (word << 8) | u128::from(byte));
            (word >> bit) as u64
        }
    };
    let unused = u64::BITS - bits;
    let value = word << unused;
    Some(match integer.shown {
        Shown::Signed => Value::Signed(value as i64 >> unused),
        Shown::Unsigned | Shown::Hex | Shown::Address | Shown::Text => {
            Value::Unsigned(value >> unused)
        }
    })
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    &bytes[..memchr(0, bytes).unwrap_or(bytes.len())]
}

impl<'a> Iterator for Integers<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        self.left = self.left.checked_sub(1)?;
        let value = number(self.element, self.bytes, self.bit)?;
        let end = self.bit + usize::from(self.element.bits);
        self.bytes = &self.bytes[end / 8..];
        self.bit = end % 8;
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}
