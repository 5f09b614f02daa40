// SPDX-License-Identifier: GPL-2.0

//! Addresses of the kernel in a packet: set to 0 for a reader that may not see them.

use super::packet::PacketHeader;
use super::records::{Malformed, RecordHeader, Records, Walk};
use super::schema::Field;

/// Sets all addresses of the kernel in a packet to 0. `packet` has the packet's bytes up to the end
/// of its content.
///
/// [`Malformed`]: some bytes are not a valid record; nothing after them was set to 0. Any context.
pub fn blank(packet: &mut [u8], records: &impl Records) -> Result<(), Malformed> {
    let mut at = PacketHeader::SIZE;
    while at < packet.len() {
        let header = RecordHeader::read(packet, at, records.layout(), 0)?;
        let number = header.number;
        if !records.has(number) {
            return Err(Malformed);
        }
        at = blank_fields(packet, header.end, |place| records.context(place))?;
        at = blank_fields(packet, at, |place| records.field(number, place))?;
    }
    if at == packet.len() {
        Ok(())
    } else {
        Err(Malformed)
    }
}

/// Sets the addresses among fields that begin at `at` to 0. Returns where the fields end.
fn blank_fields<'a>(
    packet: &mut [u8],
    at: usize,
    fields: impl Fn(usize) -> Option<Field<'a>>,
) -> Result<usize, Malformed> {
    let mut walk = Walk::new(at, fields)?;
    while let Some((field, place)) = walk.next(packet)? {
        if field.ty.has_addresses() {
            let addresses = packet.get_mut(place.begin / 8..place.end / 8);
            addresses.ok_or(Malformed)?.fill(0);
        }
    }
    Ok(walk.end())
}
