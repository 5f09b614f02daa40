// SPDX-License-Identifier: GPL-2.0

//! Addresses of the kernel in a packet: blanked for a reader who may not see them.

use super::header::{
    Layout, COMPACT_ESCAPE, COMPACT_EXTENDED_SIZE, COMPACT_SIZE, LARGE_ESCAPE, LARGE_EXTENDED_SIZE,
    LARGE_SIZE,
};
use super::packet::PacketHeader;
use super::schema::{Field, FieldType, Integer};

/// What the records of a packet consist of.
pub trait Records {
    /// Their headers.
    fn layout(&self) -> Layout;
    /// What stands between the header and the event's own fields.
    fn contexts(&self) -> impl Iterator<Item = Field<'static>> + Clone + '_;
    /// The fields of the event that has this number in the stream.
    fn event(&self, number: u32) -> Option<impl Iterator<Item = Field<'_>> + Clone + '_>;
}

/// So many fields of an event can be the length of a sequence: the first ones.
const LENGTHS: usize = 64;

/// Sets all addresses of the kernel in a packet to 0. `packet`: its bytes up to its content's end.
///
/// [`None`]: something in it is no such record; from there on, nothing was blanked. Any context.
pub fn blank(packet: &mut [u8], records: &impl Records) -> Option<()> {
    let mut at = PacketHeader::SIZE;
    while at < packet.len() {
        let (number, behind) = header(packet, at, records.layout())?;
        at = blank_fields(packet, behind, records.contexts())?;
        at = blank_fields(packet, at, records.event(number)?)?;
    }
    (at == packet.len()).then_some(())
}

/// The number of the event whose header is at `at`, and what comes behind the header.
fn header(packet: &[u8], at: usize, layout: Layout) -> Option<(u32, usize)> {
    let number = |skipped: usize, bytes| number(packet, at.checked_add(skipped)?, bytes);
    let (escape, id, extended_id, size, extended_size) = match layout {
        Layout::Compact => (
            COMPACT_ESCAPE,
            number(0, 1)? & u64::from(COMPACT_ESCAPE),
            1,
            COMPACT_SIZE,
            COMPACT_EXTENDED_SIZE,
        ),
        Layout::Large => (
            LARGE_ESCAPE,
            number(0, 2)?,
            2,
            LARGE_SIZE,
            LARGE_EXTENDED_SIZE,
        ),
    };
    if id == u64::from(escape) {
        let id = number(extended_id, 4)? as u32;
        Some((id, at.checked_add(extended_size)?))
    } else {
        Some((id as u32, at.checked_add(size)?))
    }
}

/// Blanks the addresses among fields that begin at `at`; where they end.
fn blank_fields<'a>(
    packet: &mut [u8],
    at: usize,
    fields: impl Iterator<Item = Field<'a>> + Clone,
) -> Option<usize> {
    let mut values = [0_u64; LENGTHS];
    let mut bit = at.checked_mul(8)?;
    for (place, field) in fields.clone().enumerate() {
        bit = bit.checked_next_multiple_of(field.ty.align())?;
        let (integer, count) = match field.ty {
            FieldType::Integer(integer) | FieldType::Enumeration(integer, _) => {
                if let (false, Some(value)) = (integer.is_bit_field, values.get_mut(place)) {
                    *value = number(packet, bit / 8, usize::from(integer.bits / 8))?;
                }
                (integer, 1)
            }
            FieldType::Array(integer, count) => (integer, count as usize),
            FieldType::Sequence(integer, length) => {
                let mut before = fields.clone().take(place);
                let length = before.position(|field| field.name == length)?;
                (integer, usize::try_from(*values.get(length)?).ok()?)
            }
            FieldType::String => {
                let text = packet.get(bit / 8..)?;
                let nul = text.iter().position(|byte| *byte == 0)?;
                (Integer::TEXT, nul.checked_add(1)?)
            }
        };
        let end = bit.checked_add(usize::from(integer.bits).checked_mul(count)?)?;
        if field.ty.has_addresses() {
            packet.get_mut(bit / 8..end / 8)?.fill(0);
        }
        bit = end;
    }
    let end = bit.div_ceil(8);
    (end <= packet.len()).then_some(end)
}

/// The little-endian number of so many bytes at `at`.
fn number(packet: &[u8], at: usize, bytes: usize) -> Option<u64> {
    let bytes = packet.get(at..at.checked_add(bytes)?)?;
    let shifted = |value: u64, byte: &u8| value.wrapping_shl(8) | u64::from(*byte);
    Some(bytes.iter().rev().fold(0, shifted))
}
