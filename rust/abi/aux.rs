// SPDX-License-Identifier: GPL-2.0

//! The part of a trace that comes from an AUX area. Events describe the chunks of a CPU's stream of
//! raw bytes, and packets contain the stream.
//!
//! A packet begins with a page that has an [`AuxHeader`]. After it come pages of the area; the
//! packet's own bytes are a part of those.

use super::packet::PacketHeader;
use super::schema::{Field, FieldType};
use core::mem::offset_of;

/// The fields of an event of an AUX area. A reader of a trace identifies such an event by them.
///
/// - `aux_cpu`: the CPU of the area;
/// - `aux_offset`: position of the chunk in the stream, in bytes;
/// - `aux_size`: size of the chunk in bytes;
/// - `aux_lost`: bytes that found no room since the previous chunk, if the producer said how many;
/// - `aux_flags`: see [`flags`].
pub const FIELDS: [Field<'static>; 5] = [
    Field::new("aux_cpu", FieldType::unsigned(32)),
    Field::new("aux_offset", FieldType::unsigned(64)),
    Field::new("aux_size", FieldType::unsigned(64)),
    Field::new("aux_lost", FieldType::unsigned(64)),
    Field::new("aux_flags", FieldType::hex(64)),
];

/// Properties of a chunk: the bits of `aux_flags`, as perf's `PERF_AUX_FLAG_*`.
pub mod flags {
    /// Bytes are missing before the chunk, or at its end: there was no room.
    pub const TRUNCATED: u64 = 1 << 0;
    /// The area overwrites its oldest bytes: the chunk's bytes may no longer exist.
    pub const OVERWRITE: u64 = 1 << 1;
    /// Bytes are missing in the chunk.
    pub const PARTIAL: u64 = 1 << 2;
    /// Another producer wanted to write meanwhile, and could not.
    pub const COLLISION: u64 = 1 << 3;
    /// The bits that a producer may set.
    pub const PRODUCER: u64 = TRUNCATED | PARTIAL | COLLISION;
}

/// The beginning of a packet's first page; the rest of that page is 0.
///
/// In `packet`, both times are 0. `content_size` ends at the last of the packet's own bytes.
/// `events_discarded` is the number of bytes lost in the trace until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuxHeader {
    /// The header of every packet.
    pub packet: PacketHeader,
    /// Position in the stream of the packet's first own byte.
    pub position: u64,
    /// Offset of that byte in the packet: in its second page, if the packet has own bytes.
    pub offset: u64,
    /// Number of the packet's own bytes.
    pub bytes: u64,
}

impl AuxHeader {
    /// Size in bytes.
    pub const SIZE: usize = PacketHeader::SIZE + 24;

    /// The header as it lies in the packet: little endian, without padding.
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let PacketHeader {
            magic,
            uuid,
            stream_id,
            stream_instance_id,
            timestamp_begin,
            timestamp_end,
            content_size,
            packet_size,
            packet_seq_num,
            events_discarded,
            cpu_id,
        } = self.packet;
        let mut bytes = [0; Self::SIZE];
        let mut put = |at: usize, field: &[u8]| {
            if let Some(to) = bytes.get_mut(at..).and_then(|to| to.get_mut(..field.len())) {
                to.copy_from_slice(field);
            }
        };
        put(offset_of!(PacketHeader, magic), &magic.to_le_bytes());
        put(offset_of!(PacketHeader, uuid), &uuid);
        put(
            offset_of!(PacketHeader, stream_id),
            &stream_id.to_le_bytes(),
        );
        for (at, word) in [
            (
                offset_of!(PacketHeader, stream_instance_id),
                stream_instance_id,
            ),
            (offset_of!(PacketHeader, timestamp_begin), timestamp_begin),
            (offset_of!(PacketHeader, timestamp_end), timestamp_end),
            (offset_of!(PacketHeader, content_size), content_size),
            (offset_of!(PacketHeader, packet_size), packet_size),
            (offset_of!(PacketHeader, packet_seq_num), packet_seq_num),
            (offset_of!(PacketHeader, events_discarded), events_discarded),
            (PacketHeader::SIZE, self.position),
            (PacketHeader::SIZE + 8, self.offset),
            (PacketHeader::SIZE + 16, self.bytes),
        ] {
            put(at, &word.to_le_bytes());
        }
        put(offset_of!(PacketHeader, cpu_id), &cpu_id.to_le_bytes());
        bytes
    }

    /// Makes a header of `packet` and the bytes after it.
    #[allow(dead_code)] // The tools use it.
    pub fn from_bytes(packet: PacketHeader, behind: &[u8; 24]) -> Self {
        let word = |at: usize| {
            let mut word = [0; 8];
            if let Some(from) = behind.get(at..at + 8) {
                word.copy_from_slice(from);
            }
            u64::from_le_bytes(word)
        };
        Self {
            packet,
            position: word(0),
            offset: word(8),
            bytes: word(16),
        }
    }
}
