// SPDX-License-Identifier: GPL-2.0

//! The events of one sound packet: the first byte says with which headers, eight more at what
//! time it begins, the rest are the events.
//!
//! What was read, written again by the synthetic writer, is read as the same. So is what the
//! bytes stand for as events to be written.

use super::packets::{layout, metadata};
use crate::walk::{self, Field, Recorded};
use arbitrary::{Result, Unstructured};
use rtrace_abi::header::Layout;
use rtrace_abi::packet::PacketHeader;
use rtrace_abi::schema::FieldType;
use synthetic::PacketBuilder;
use trace::ctf::EventLayout;

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
    let read = walk::stream(metadata(layout), &written(layout, begin, events));
    assert_eq!(read.expect("a sound packet"), events);
}

/// Events of two kinds, with any numbers and texts, at times apart by all orders of magnitude.
fn made(layout: Layout, begin: u64, u: &mut Unstructured<'_>) -> Result<Vec<Recorded>> {
    let mut made = Vec::new();
    let mut timestamp = begin;
    while !u.is_empty() {
        let step = u.arbitrary::<u64>()? >> u.int_in_range(0..=63)?;
        timestamp = timestamp.saturating_add(step);
        let id = *u.choose(&[synthetic::EXEC, synthetic::READ])?;
        let fields = &metadata(layout).events[&id].fields;
        let values = fields.iter().map(|field| value(field.ty, u));
        made.push(Recorded {
            id,
            timestamp,
            values: values.collect::<Result<_>>()?,
        });
    }
    Ok(made)
}

fn value(ty: FieldType, u: &mut Unstructured<'_>) -> Result<Field> {
    Ok(match ty {
        FieldType::Signed(bits) => Field::Signed(u.arbitrary::<i64>()? >> (64 - bits)),
        FieldType::Unsigned(bits) | FieldType::Hex(bits) => {
            Field::Unsigned(u.arbitrary::<u64>()? >> (64 - bits))
        }
        FieldType::Text(_) | FieldType::String => {
            let text: &[u8] = u.arbitrary()?;
            Field::Text(
                text.split(|&byte| byte == 0)
                    .next()
                    .unwrap_or_default()
                    .to_vec(),
            )
        }
    })
}

/// A packet around these bytes.
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
        let payload = payload(&metadata(layout).events[&event.id], &event.values);
        packet = packet.event(event.id, event.timestamp, &payload);
    }
    packet.close(u64::MAX, 1)
}

fn payload(layout: &EventLayout, values: &[Field]) -> Vec<u8> {
    let mut out = Vec::new();
    for (field, value) in layout.fields.iter().zip(values) {
        let end = field.ty.size().map(|size| out.len() + size);
        match (field.ty, value) {
            (FieldType::String, Field::Text(text)) => {
                out.extend(text);
                out.push(0);
            }
            (_, Field::Text(text)) => out.extend(text),
            (_, Field::Unsigned(number)) => out.extend(number.to_le_bytes()),
            (_, Field::Signed(number)) => out.extend(number.to_le_bytes()),
        }
        if let Some(end) = end {
            out.resize(end, 0);
        }
    }
    out
}
