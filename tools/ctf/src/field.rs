// SPDX-License-Identifier: GPL-2.0

//! The places of an event's fields in its payload, and their values.

use crate::metadata::{FieldLayout, Type};
use rtrace_abi::schema::{Integer, Shown};

/// A field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// An unsigned integer.
    Unsigned(u64),
    /// A signed integer.
    Signed(i64),
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
    payload: &'a [u8],
    /// The number of the next field.
    field: usize,
    /// The bit after the last field.
    end: usize,
    /// The integers so far, by the numbers of their fields, if a field is a sequence. Each may be the length of one.
    lengths: Option<Vec<u64>>,
}

impl<'a> Cursor<'a> {
    /// Begins at the first field. `has_sequence` tells whether a field may be a sequence.
    pub(super) fn new(fields: &'a [FieldLayout], has_sequence: bool, payload: &'a [u8]) -> Self {
        Self {
            fields,
            payload,
            field: 0,
            end: 0,
            lengths: has_sequence.then(Vec::new),
        }
    }

    /// The number of bytes of all fields. [`None`]: the payload ends before they do.
    pub(super) fn size_of_all(mut self) -> Option<usize> {
        for _ in self.fields {
            self.next_value()?;
        }
        Some(self.size())
    }

    /// The value of the field with this number, if present.
    pub(super) fn nth(mut self, field: usize) -> Option<Value<'a>> {
        for _ in 0..field {
            self.next_value()?;
        }
        self.next_value()
    }

    /// The number of bytes of the fields so far.
    fn size(&self) -> usize {
        self.end.div_ceil(8)
    }

    /// The value of the next field. [`None`]: no field is left, or the payload ends before it does.
    pub(super) fn next_value(&mut self) -> Option<Value<'a>> {
        let ty = &self.fields.get(self.field)?.ty;
        let begin = self.end.next_multiple_of(ty.align());
        let bytes = self.payload.get(begin / 8..)?;
        let (element, left) = match ty {
            Type::Integer(integer) | Type::Enumeration(integer, _) => (*integer, 1),
            Type::Array(element, length) => (*element, *length as usize),
            Type::Sequence(element, length) => {
                let length = *self.lengths.as_ref()?.get(*length)?;
                (*element, usize::try_from(length).ok()?)
            }
            Type::String => {
                let length = bytes.iter().position(|&byte| byte == 0)? + 1;
                (Integer::TEXT, length)
            }
        };
        let bits = left.checked_mul(usize::from(element.bits))?;
        let end = begin.checked_add(bits)?;
        if end > self.payload.len() * 8 {
            return None;
        }
        let mut integers = Integers {
            element,
            bytes: &bytes[..end.div_ceil(8) - begin / 8],
            bit: begin % 8,
            left,
        };
        let value = match ty {
            Type::Integer(_) | Type::Enumeration(..) => integers.next()?,
            _ if element == Integer::TEXT => Value::Text(until_nul(integers.bytes)),
            _ => Value::Integers(integers),
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
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|&byte| byte == 0);
    &bytes[..end.unwrap_or(bytes.len())]
}

impl<'a> Iterator for Integers<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        self.left = self.left.checked_sub(1)?;
        let bits = u32::from(self.element.bits);
        let end = self.bit + bits as usize;
        // 64 bits may lie in nine bytes.
        let bytes = self.bytes.get(..end.div_ceil(8))?;
        let word = bytes
            .iter()
            .rev()
            .fold(0, |word: u128, &byte| (word << 8) | u128::from(byte));
        let unused = u64::BITS - bits;
        let value = ((word >> self.bit) as u64) << unused;
        self.bytes = &self.bytes[end / 8..];
        self.bit = end % 8;
        Some(match self.element.shown {
            Shown::Signed => Value::Signed(value as i64 >> unused),
            Shown::Unsigned | Shown::Hex | Shown::Address | Shown::Text => {
                Value::Unsigned(value >> unused)
            }
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}
