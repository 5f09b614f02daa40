// SPDX-License-Identifier: GPL-2.0

//! Location of an event's fields in its record.

use super::abi::schema::{Field, FieldType, Integer, Shown};
use super::program::{BytesAt, Extent, NumberAt, NumberSource, TextAt};

/// An event's fields, in the order of the record.
#[derive(Clone)]
pub(super) struct FieldLayout<F> {
    pub(super) fields: F,
}

/// The left side of a comparison.
#[derive(Clone, Copy)]
pub(super) enum ComparedValue {
    Number(NumberAt, Integer),
    /// A text, and the number of bytes of the longest one. [`None`]: there is no limit.
    Text(TextAt, Option<u32>),
    /// A set of numbers.
    Set(BytesAt),
}

/// Location where a field begins.
#[derive(Clone, Copy)]
struct Place {
    /// Number of fields of variable size before it.
    passed: usize,
    /// Offset, counted from the end of the last one of these.
    at: u32,
}

impl<'a, F: Iterator<Item = Field<'a>> + Clone> FieldLayout<F> {
    /// Returns the field called `name`.
    pub(super) fn find(&self, name: &str) -> Option<(usize, FieldType<'a>)> {
        let mut fields = self.fields.clone().enumerate();
        let (index, field) = fields.find(|(_, field)| field.name == name)?;
        Some((index, field.ty))
    }

    /// Returns whether a field, or one before it, is a bit field or consists of bit fields. Then the
    /// field may begin at any bit.
    pub(super) fn has_bit_field(&self, index: usize) -> bool {
        let mut fields = self.fields.clone().take(index.saturating_add(1));
        fields.any(|field| {
            field
                .ty
                .integer()
                .is_some_and(|integer| integer.is_bit_field)
        })
    }

    /// Returns the fields of variable size before a field, which the program must pass. [`None`]
    /// instead of a field that cannot be passed.
    pub(super) fn passed(
        &self,
        index: usize,
    ) -> impl Iterator<Item = Option<BytesAt>> + use<'_, 'a, F> {
        let before = self.fields.clone().enumerate().take(index);
        before
            .filter(|(_, field)| field.ty.bits().is_none())
            .map(|(index, field)| self.bytes(index, field.ty))
    }

    /// Returns a field's value. [`None`]: the field cannot be compared.
    pub(super) fn value(&self, index: usize, ty: FieldType<'a>) -> Option<ComparedValue> {
        match ty {
            FieldType::Integer(integer) | FieldType::Enumeration(integer, _) => {
                Some(ComparedValue::Number(self.number(index, integer)?, integer))
            }
            _ => {
                let bytes = self.bytes(index, ty)?;
                Some(if is_text(ty) {
                    let name = self.fields.clone().nth(index)?.name;
                    ComparedValue::Text(TextAt::Record(bytes), longest(name, ty))
                } else {
                    ComparedValue::Set(bytes)
                })
            }
        }
    }

    /// Returns where a field begins. [`None`]: the offset is too large.
    fn place(&self, index: usize) -> Option<Place> {
        let mut place = Place { passed: 0, at: 0 };
        for field in self.fields.clone().take(index) {
            place = match field.ty.size() {
                Some(size) => Place {
                    at: place.at.checked_add(u32::try_from(size).ok()?)?,
                    ..place
                },
                None => Place {
                    passed: place.passed.checked_add(1)?,
                    at: 0,
                },
            };
        }
        Some(place)
    }

    fn number(&self, index: usize, integer: Integer) -> Option<NumberAt> {
        let place = self.place(index)?;
        let source = match (place.passed, integer.bits) {
            (0, 8) => NumberSource::U8,
            (0, 16) => NumberSource::U16,
            (0, 32) => NumberSource::U32,
            (0, 64) => NumberSource::U64,
            _ => NumberSource::Far(integer.bits / 8),
        };
        let at = place.at;
        Some(NumberAt { source, at })
    }

    /// Returns the bytes of a field that is no integer.
    fn bytes(&self, index: usize, ty: FieldType<'a>) -> Option<BytesAt> {
        let place = self.place(index)?;
        let extent = match ty {
            FieldType::String => Extent::Terminated,
            FieldType::Array(..) => Extent::Fixed(u32::try_from(ty.size()?).ok()?),
            FieldType::Sequence(element, length) => {
                let (length, ty) = self.find(length).filter(|(length, _)| *length < index)?;
                let FieldType::Integer(integer) = ty else {
                    return None;
                };
                // The fields passed between the two would have to be passed again.
                let passed = self.place(length)?.passed;
                if passed != 0 && passed != place.passed {
                    return None;
                }
                Extent::Counted(self.number(length, integer)?, element.bits / 8)
            }
            FieldType::Integer(_) | FieldType::Enumeration(..) => return None,
        };
        Some(BytesAt {
            is_far: place.passed != 0,
            at: place.at,
            extent,
        })
    }
}

/// Returns whether a field, or a context, is a text.
pub(super) fn is_text(ty: FieldType<'_>) -> bool {
    match ty {
        FieldType::String => true,
        FieldType::Array(element, _) | FieldType::Sequence(element, _) => {
            element.shown == Shown::Text
        }
        FieldType::Integer(_) | FieldType::Enumeration(..) => false,
    }
}

/// Size of the kernel's array for the name of a thread, whose last byte is always NUL.
const COMM_SIZE: u32 = 16;

/// Returns the number of bytes of the longest text that a field, or a context, can have.
fn longest(name: &str, ty: FieldType<'_>) -> Option<u32> {
    match ty {
        FieldType::Array(_, COMM_SIZE) if name.ends_with("comm") => Some(COMM_SIZE - 1),
        FieldType::Array(_, bytes) => Some(bytes),
        _ => None,
    }
}

/// Returns a context's value. [`None`]: the context cannot be compared.
pub(super) fn context(name: &str, id: u8, ty: FieldType<'_>) -> Option<ComparedValue> {
    match ty {
        FieldType::Integer(integer) | FieldType::Enumeration(integer, _) => {
            let number = NumberAt {
                source: NumberSource::Context,
                at: id.into(),
            };
            Some(ComparedValue::Number(number, integer))
        }
        _ => is_text(ty).then(|| ComparedValue::Text(TextAt::Context(id), longest(name, ty))),
    }
}
