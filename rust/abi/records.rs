// SPDX-License-Identifier: GPL-2.0

//! The records of a packet: their headers, and the location of their fields' values.
//!
//! The bytes are not trusted: values that cannot be valid are [`Malformed`].

use super::header::{
    Layout, COMPACT_ESCAPE, COMPACT_EXTENDED_SIZE, COMPACT_ID_BITS, COMPACT_SIZE,
    COMPACT_TIME_BITS, LARGE_ESCAPE, LARGE_EXTENDED_SIZE, LARGE_SIZE, LARGE_TIME_BITS,
};
use super::schema::{Field, FieldType, Integer};

/// Description of the records of a packet.
pub trait Records {
    /// Layout of their headers.
    fn layout(&self) -> Layout;
    /// Returns the context at index `place`. Contexts lie between the header and the event's own
    /// fields.
    fn context(&self, place: usize) -> Option<Field<'static>>;
    /// Returns whether an event has this number in the stream.
    fn has(&self, number: u32) -> bool;
    /// Returns the event's field at index `place`.
    fn field(&self, number: u32, place: usize) -> Option<Field<'_>>;
}

/// The bytes are not a valid record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// The decoded header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// The event's number.
    pub number: u32,
    /// Time of the event, by the trace's clock.
    pub time: u64,
    /// Offset of the contexts in the packet, in bytes.
    pub end: usize,
}

impl RecordHeader {
    /// Reads the header at `at`. `before`: time of the previous record, or of the packet's
    /// beginning.
    pub fn read(packet: &[u8], at: usize, layout: Layout, before: u64) -> Result<Self, Malformed> {
        let number = |skipped: usize, bytes| {
            let at = at.checked_add(skipped).ok_or(Malformed)?;
            number(packet, at, bytes)
        };
        let (id, escape, low, bits, size) = match layout {
            Layout::Compact => {
                let word = number(0, COMPACT_SIZE)?;
                let escape = u64::from(COMPACT_ESCAPE);
                let low = word >> COMPACT_ID_BITS;
                (word & escape, escape, low, COMPACT_TIME_BITS, COMPACT_SIZE)
            }
            Layout::Large => {
                let (id, low) = (number(0, 2)?, number(2, 4)?);
                (id, LARGE_ESCAPE.into(), low, LARGE_TIME_BITS, LARGE_SIZE)
            }
        };
        let (number, time, size) = if id == escape {
            let (escape, size) = match layout {
                Layout::Compact => (1, COMPACT_EXTENDED_SIZE),
                Layout::Large => (2, LARGE_EXTENDED_SIZE),
            };
            (number(escape, 4)?, number(escape + 4, 8)?, size)
        } else {
            (id, later(before, low, bits), size)
        };
        Ok(Self {
            number: number as u32,
            time,
            end: at.checked_add(size).ok_or(Malformed)?,
        })
    }
}

/// Returns the first time from `before` on whose lowest `bits` bits are `low`.
fn later(before: u64, low: u64, bits: u32) -> u64 {
    let lap = 1_u64 << bits;
    let time = before & !lap.wrapping_sub(1) | low;
    if time < before {
        time.wrapping_add(lap)
    } else {
        time
    }
}

/// Location of a field's value, in bits of the packet, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldPlace {
    /// Its first bit.
    pub begin: usize,
    /// The bit after the last one.
    pub end: usize,
    /// Type of the integers that the value consists of. A string consists of bytes of text, with
    /// its NUL.
    pub integer: Integer,
}

/// Number of an event's first fields that can be the length of a sequence.
const LENGTHS: usize = 64;

/// A walk through adjacent fields, which `fields` returns by their index. (Not an iterator of
/// fields: that may be large, and a stack in the kernel is small.)
pub struct Walk<F> {
    fields: F,
    /// Index of the next field.
    place: usize,
    /// Values of the first fields that are plain integers.
    values: [u64; LENGTHS],
    bit: usize,
}

impl<'a, F: Fn(usize) -> Option<Field<'a>>> Walk<F> {
    /// Makes a walk through the fields that begin at byte `at` of a packet.
    pub fn new(at: usize, fields: F) -> Result<Self, Malformed> {
        Ok(Self {
            fields,
            place: 0,
            values: [0; LENGTHS],
            bit: at.checked_mul(8).ok_or(Malformed)?,
        })
    }

    /// Returns the next field and its location in the packet. [`None`]: there are no more fields.
    pub fn next(&mut self, packet: &[u8]) -> Result<Option<(Field<'a>, FieldPlace)>, Malformed> {
        let Some(field) = (self.fields)(self.place) else {
            return Ok(None);
        };
        let begin = self.bit.checked_next_multiple_of(field.ty.align());
        let begin = begin.ok_or(Malformed)?;
        let (integer, count) = match field.ty {
            FieldType::Integer(integer) | FieldType::Enumeration(integer, _) => (integer, 1),
            FieldType::Array(integer, count) => (integer, count as usize),
            FieldType::Sequence(integer, length) => {
                let name = |place| (self.fields)(place).map(|field| field.name);
                let length = (0..self.place).find(|place| name(*place) == Some(length));
                let length = length.and_then(|place| self.values.get(place));
                let count = usize::try_from(*length.ok_or(Malformed)?);
                (integer, count.map_err(|_| Malformed)?)
            }
            FieldType::String => {
                let text = packet.get(begin / 8..).ok_or(Malformed)?;
                let nul = text.iter().position(|byte| *byte == 0);
                (Integer::TEXT, nul.ok_or(Malformed)?.wrapping_add(1))
            }
        };
        let bits = usize::from(integer.bits).checked_mul(count);
        let end = bits.and_then(|bits| begin.checked_add(bits));
        let end = end.ok_or(Malformed)?;
        if end.div_ceil(8) > packet.len() {
            return Err(Malformed);
        }
        if let (FieldType::Integer(_) | FieldType::Enumeration(..), Some(value)) =
            (field.ty, self.values.get_mut(self.place))
        {
            if !integer.is_bit_field {
                *value = number(packet, begin / 8, usize::from(integer.bits / 8))?;
            }
        }
        self.place = self.place.wrapping_add(1);
        self.bit = end;
        let place = FieldPlace {
            begin,
            end,
            integer,
        };
        Ok(Some((field, place)))
    }

    /// Returns where the fields that were returned so far end, in bytes.
    pub fn end(&self) -> usize {
        self.bit.div_ceil(8)
    }
}

/// Returns the little-endian number of `bytes` bytes at `at`.
fn number(packet: &[u8], at: usize, bytes: usize) -> Result<u64, Malformed> {
    let end = at.checked_add(bytes).ok_or(Malformed)?;
    let bytes = packet.get(at..end).ok_or(Malformed)?;
    let shifted = |value: u64, byte: &u8| value.wrapping_shl(8) | u64::from(*byte);
    Ok(bytes.iter().rev().fold(0, shifted))
}
