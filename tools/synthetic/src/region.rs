// SPDX-License-Identifier: GPL-2.0

//! Reserved memory after the end of the kernel that used it.

use crate::UUID;
use rtrace_abi::region::{
    checksum, BufferPlace, MetadataWords, RegionHeader, METADATA_AT, NAME_MAX, PAGE,
};

/// Size of a sub-buffer in bytes.
pub const SUBBUF: usize = 4096;

/// Size of a slot in bytes.
const SLOT: usize = 64;
/// No writer uses the memory of the slot.
const IDLE: u64 = 1 << 32;
/// The memory has a finished packet.
const PACKET: u64 = 1 << 31;

/// Contents of a slot of a buffer.
#[derive(Clone, Debug)]
pub enum Slot {
    /// No packet.
    Empty,
    /// A finished packet.
    Finished(Vec<u8>),
    /// A packet that was complete when the machine stopped, and not delivered.
    Complete(Vec<u8>),
    /// A packet of which this number of bytes and records were committed.
    Open(Vec<u8>, u64, u64),
}

/// The region of `channel0` of the trace [`UUID`], with this description and these buffers. For each CPU: its
/// slots. All CPUs have the same number of slots, a power of two.
pub fn region(metadata: &str, buffers: &[(u32, Vec<Slot>)]) -> Vec<u8> {
    let page = PAGE as usize;
    let count = buffers.first().map_or(2, |(_, slots)| slots.len());
    let room = metadata.len().next_multiple_of(page);
    let table_at = page;
    let metadata_at = 2 * page;
    let first = metadata_at + 2 * room;
    let buffer = (count * SLOT).next_multiple_of(page) + (count + 1) * SUBBUF;
    let mut bytes = vec![0; first + buffers.len() * buffer];
    let mut name = [0; NAME_MAX];
    name[..8].copy_from_slice(b"channel0");
    let header = RegionHeader {
        size: bytes.len() as u64,
        uuid: UUID,
        boot_id: [b'0'; 36],
        stream_id: 0,
        subbuf_size: SUBBUF as u64,
        subbuf_count: count as u64,
        table_at: table_at as u64,
        table_room: buffers.len() as u64,
        metadata_at: metadata_at as u64,
        metadata_room: room as u64,
        name,
    };
    let mut put = |at: usize, with: &[u8]| bytes[at..at + with.len()].copy_from_slice(with);
    put(0, &header.to_bytes());
    let words = MetadataWords {
        writes: 2,
        texts: [
            (metadata.len() as u64, checksum(metadata.as_bytes())),
            (0, 0),
        ],
    };
    put(METADATA_AT as usize, &words.to_bytes());
    put(metadata_at, metadata.as_bytes());
    for (index, (cpu, slots)) in buffers.iter().enumerate() {
        let at = first + index * buffer;
        let place = BufferPlace {
            at: at as u64,
            cpu: *cpu,
        };
        put(table_at + index * BufferPlace::SIZE, &place.to_bytes());
        let subbufs = at + (count * SLOT).next_multiple_of(page);
        for (index, slot) in slots.iter().enumerate() {
            // The first slot has the reader's sub-buffer.
            let memory = if index == 0 { count } else { index };
            let (left, reference, records, held) = match slot {
                Slot::Empty => (SUBBUF, IDLE, 0, None),
                Slot::Finished(packet) => (SUBBUF, IDLE | PACKET, 0, Some(packet)),
                Slot::Complete(packet) => (0, 0, 0, Some(packet)),
                Slot::Open(packet, committed, records) => {
                    (SUBBUF - *committed as usize, 0, *records, Some(packet))
                }
            };
            let words = [
                left as u64,
                100 + records,
                0,
                0,
                reference | memory as u64,
                0,
                0,
                100,
            ];
            for (word, value) in words.iter().enumerate() {
                put(at + index * SLOT + word * 8, &value.to_le_bytes());
            }
            put(subbufs + memory * SUBBUF, held.map_or(&[], Vec::as_slice));
        }
    }
    bytes
}
