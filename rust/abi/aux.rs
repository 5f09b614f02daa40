// SPDX-License-Identifier: GPL-2.0

//! What an AUX area leaves in a trace: events that say what lies where in a CPU's stream of raw bytes,
//! and packets of that stream.
//!
//! A packet begins with a page that has an [`AuxHeader`]. Behind it are pages of the area; the packet's
//! own bytes are some of those.

use super::packet::PacketHeader;
use super::schema::{Field, FieldType};
use core::mem::offset_of;

/// The fields of an event of an AUX area. A reader of a trace knows such an event by them.
///
/// - `aux_cpu`: whose area it is;
/// - `aux_offset`: where in its stream the chunk begins, in bytes;
/// - `aux_size`: its bytes;
/// - `aux_lost`: bytes that found no room since the chunk before, where the producer had said how many;
/// - `aux_flags`: see [`flags`].
pub const FIELDS: [Field<'static>; 5] = [
    Field::new("aux_cpu", FieldType::unsigned(32)),
    Field::new("aux_offset", FieldType::unsigned(64)),
    Field::new("aux_size", FieldType::unsigned(64)),
    Field::new("aux_lost", FieldType::unsigned(64)),
    Field::new("aux_flags", FieldType::hex(64)),
];

/// What there is to say of a chunk: the bits of `aux_flags`, as perf's `PERF_AUX_FLAG_*`.
pub mod flags {
    /// Something is missing in front of the chunk, or at its end: there was no room.
    pub const TRUNCATED: u64 = 1 << 0;
    /// The area overwrites its oldest bytes: these may not be there any more.
    pub const OVERWRITE: u64 = 1 << 1;
    /// Something is missing in it.
    pub const PARTIAL: u64 = 1 << 2;
    /// Somebody else wanted to write meanwhile, and could not.
    pub const COLLISION: u64 = 1 << 3;
    /// Those that a producer may set.
    pub const PRODUCER: u64 = TRUNCATED | PARTIAL | COLLISION;
}

/// What the first page of a packet begins with; the rest of it is 0.
///
/// Of `packet` the times are 0, `content_size` ends at the last byte of the packet's own, and
/// `events_discarded` is how many bytes were lost in the trace until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuxHeader {
    /// As in front of every packet.
    pub packet: PacketHeader,
    /// Where in the stream its bytes begin.
    pub position: u64,
    /// Where in the packet they begin: in its second page, if there are any.
    pub offset: u64,
    /// How many there are.
    pub bytes: u64,
}

impl AuxHeader {
    /// Its size in bytes.
    pub const SIZE: usize = PacketHeader::SIZE + 24;

    /// As it lies in the packet: little endian, without padding.
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

    /// With these bytes behind `packet`.
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
