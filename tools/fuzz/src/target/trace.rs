// SPDX-License-Identifier: GPL-2.0

//! A whole trace: its description up to the first NUL. Then, for each stream class of the description, the
//! events of one packet.

use super::events;
use crate::walk;
use ctf::Metadata;
use rtrace_abi::packet::PacketHeader;

/// More stream classes take time and find nothing more.
const STREAMS: usize = 8;

pub fn check(data: &[u8]) {
    let Some(end) = data.iter().position(|&byte| byte == 0) else {
        return;
    };
    let (text, rest) = data.split_at(end);
    let Ok(Ok(metadata)) = std::str::from_utf8(text).map(Metadata::parse) else {
        return;
    };
    for (id, class) in (0_u32..).zip(&metadata.streams).take(STREAMS) {
        let mut packet = events::packet(class.layout, 0, &rest[1..]);
        let uuid = std::mem::offset_of!(PacketHeader, uuid);
        packet[uuid..uuid + 16].copy_from_slice(metadata.uuid.as_bytes());
        let stream_id = std::mem::offset_of!(PacketHeader, stream_id);
        packet[stream_id..stream_id + 4].copy_from_slice(&id.to_le_bytes());
        let _ = walk::stream(&metadata, &packet);
    }
}
