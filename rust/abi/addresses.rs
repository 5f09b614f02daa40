// SPDX-License-Identifier: GPL-2.0

//! Addresses of the kernel in a packet: blanked for a reader who may not see them.

use super::packet::PacketHeader;
use super::records::{Header, Malformed, Records, Walk};
use super::schema::Field;

/// Sets all addresses of the kernel in a packet to 0. `packet`: its bytes up to its content's end.
///
/// [`Malformed`]: something in it is no such record; from there on, nothing was blanked. Any context.
pub fn blank(packet: &mut [u8], records: &impl Records) -> Result<(), Malformed> {
    let mut at = PacketHeader::SIZE;
    while at < packet.len() {
        let header = Header::read(packet, at, records.layout(), 0)?;
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

/// Blanks the addresses among fields that begin at `at`; where they end.
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
