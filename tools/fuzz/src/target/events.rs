// SPDX-License-Identifier: GPL-2.0

//! The events of one valid packet. The first byte selects the headers, the next eight bytes are the begin time,
//! and the rest is the events.
//!
//! The events that the reader returns, written again by the synthetic writer, are read as the same. The same
//! holds for events that are generated from the bytes.

use super::packets::{layout, metadata};
use crate::walk::{self, Field, Recorded};
use arbitrary::{Result, Unstructured};
use ctf::{EventLayout, Type};
use rtrace_abi::header::Layout;
use rtrace_abi::packet::PacketHeader;
use rtrace_abi::schema::{Integer, Shown};
use synthetic::PacketBuilder;

pub fn check(data: &[u8]) {
    let Some((&[first, ref begin @ ..], events)) = data.split_first_chunk::<9>() else {
        return;
    };
    let layout = layout(first);
    let begin = u64::from_le_bytes(*begin);
    if let Ok(read) = walk::stream(metadata(layout), &packet(layout, begin, events)) {
        assert_read_back(layout, begin, &read);
    }
    let made = made(layout, begin, &mut Unstructured::new(events));
    assert_read_back(layout, begin, &made.unwrap_or_default());
}

fn assert_read_back(layout: Layout, begin: u64, events: &[Recorded]) {
    let read = walk::events(metadata(layout), &written(layout, begin, events));
    assert_eq!(read.expect("a sound packet"), events);
}

/// Events of three kinds with any numbers and texts, with differences of time of all magnitudes.
fn made(layout: Layout, begin: u64, u: &mut Unstructured<'_>) -> Result<Vec<Recorded>> {
    let mut made = Vec::new();
    let mut timestamp = begin;
    while !u.is_empty() {
        let step = u.arbitrary::<u64>()? >> u.int_in_range(0..=63)?;
        timestamp = timestamp.saturating_add(step);
        let id = *u.choose(&[synthetic::EXEC, synthetic::READ, synthetic::EVERY_TYPE])?;
        let mut values = Vec::new();
        for field in &metadata(layout).streams[0].events[&id].fields {
            let mut value = value(&field.ty, u)?;
            if let Type::Sequence(_, length) = field.ty {
                // The length field gets the number of elements. The smallest length field has room for 255.
                match &mut value {
                    Field::Text(elements) => elements.truncate(255),
                    Field::Integers(elements) => elements.truncate(255),
                    _ => {}
                }
                values[length] = Field::Unsigned(length_of(&value));
            }
            values.push(value);
        }
        made.push(Recorded {
            id,
            timestamp,
            values,
        });
    }
    Ok(made)
}

fn length_of(value: &Field) -> u64 {
    match value {
        Field::Text(elements) => elements.len() as u64,
        Field::Integers(elements) => elements.len() as u64,
        _ => 1,
    }
}

fn value(ty: &Type, u: &mut Unstructured<'_>) -> Result<Field> {
    Ok(match ty {
        Type::Integer(integer) | Type::Enumeration(integer, _) => number(*integer, u)?,
        Type::Array(Integer::TEXT, length) => Field::Text(text(*length as usize, u)?),
        Type::Sequence(Integer::TEXT, _) | Type::String => Field::Text(text(usize::MAX, u)?),
        Type::Array(element, length) => {
            let elements = (0..*length).map(|_| number(*element, u));
            Field::Integers(elements.collect::<Result<_>>()?)
        }
        Type::Sequence(element, _) => {
            let length: u8 = u.int_in_range(0..=3)?;
            let elements = (0..length).map(|_| number(*element, u));
            Field::Integers(elements.collect::<Result<_>>()?)
        }
        Type::Float => unreachable!("rtrace's metadata has no such type"),
    })
}

fn number(integer: Integer, u: &mut Unstructured<'_>) -> Result<Field> {
    let unused = 64 - integer.bits;
    Ok(match integer.shown {
        Shown::Signed => Field::Signed(u.arbitrary::<i64>()? >> unused),
        _ => Field::Unsigned(u.arbitrary::<u64>()? >> unused),
    })
}

/// At most `most` bytes without a NUL.
fn text(most: usize, u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let bytes: &[u8] = u.arbitrary()?;
    let text = bytes.split(|&byte| byte == 0).next();
    let text = text.unwrap_or_default();
    Ok(text[..text.len().min(most)].to_vec())
}

/// A packet with these bytes as its events.
pub(super) fn packet(layout: Layout, begin: u64, events: &[u8]) -> Vec<u8> {
    let mut packet = PacketBuilder::new(layout, 0, 0, begin).close(u64::MAX, 1);
    packet.extend(events);
    let bits = packet.len() as u64 * 8;
    for field in [
        std::mem::offset_of!(PacketHeader, content_size),
        std::mem::offset_of!(PacketHeader, packet_size),
    ] {
        packet[field..field + 8].copy_from_slice(&bits.to_le_bytes());
    }
    packet
}

fn written(layout: Layout, begin: u64, events: &[Recorded]) -> Vec<u8> {
    let mut packet = PacketBuilder::new(layout, 0, 0, begin);
    for event in events {
        let payload = payload(
            &metadata(layout).streams[0].events[&event.id],
            &event.values,
        );
        packet = packet.event(event.id, event.timestamp, &payload);
    }
    packet.close(u64::MAX, 1)
}

fn payload(layout: &EventLayout, values: &[Field]) -> Vec<u8> {
    let mut out = Bits::default();
    for (field, value) in layout.fields.iter().zip(values) {
        out.align(field.ty.align());
        match (&field.ty, value) {
            (Type::Integer(element) | Type::Enumeration(element, _), value) => {
                out.put(*element, value);
            }
            (Type::Array(element, _) | Type::Sequence(element, _), Field::Integers(all)) => {
                all.iter().for_each(|value| out.put(*element, value));
            }
            (ty, Field::Text(text)) => {
                let length = match ty {
                    Type::Array(_, length) => *length as usize,
                    Type::Sequence(_, length) => match values[*length] {
                        Field::Unsigned(length) => length as usize,
                        _ => unreachable!("a length is unsigned"),
                    },
                    _ => text.len() + 1,
                };
                let padding = std::iter::repeat_n(&0, length - text.len());
                for byte in text.iter().chain(padding) {
                    out.put(Integer::TEXT, &Field::Unsigned((*byte).into()));
                }
            }
            _ => unreachable!("a value is of its field's type"),
        }
    }
    out.bytes
}

/// Writes bits one by one, the lowest of each byte first. Simple enough to be correct.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    end: usize,
}

impl Bits {
    fn align(&mut self, bits: usize) {
        self.end = self.end.next_multiple_of(bits);
    }

    fn put(&mut self, integer: Integer, value: &Field) {
        let value = match value {
            Field::Unsigned(number) => *number,
            Field::Signed(number) => *number as u64,
            _ => unreachable!("an element is a number"),
        };
        for bit in 0..integer.bits {
            if self.end / 8 == self.bytes.len() {
                self.bytes.push(0);
            }
            self.bytes[self.end / 8] |= (((value >> bit) & 1) as u8) << (self.end % 8);
            self.end += 1;
        }
    }
}
