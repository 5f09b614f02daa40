// SPDX-License-Identifier: GPL-2.0

//! Writers of packet headers; [`abi::packet`](super::abi::packet) has the layout.
//!
//! The opener and the closer write different fields, because an interrupt may close a packet before
//! the interrupted code has written its opening fields.

use super::abi::packet::{PacketHeader, Uuid, MAGIC};
use super::memory::{payload, Memory, Payload};
use super::platform::WritePlatform;
use super::ring::reserve::Opened;
use super::ring::switch::Closed;
use core::mem::{offset_of, size_of};

/// Identity of a buffer, for the header of each packet.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// The CPU that writes.
    pub cpu: u32,
    /// UUID of the trace.
    pub uuid: Uuid,
    /// Id of the channel's stream class in the trace.
    pub stream_id: u32,
}

payload! {
    struct Begin {
        magic: u32,
        uuid: Uuid,
        stream_id: u32,
        stream_instance_id: u64,
        timestamp_begin: u64,
    }
}

payload! {
    struct End { timestamp_end: u64, content_size: u64, packet_size: u64 }
}

// The two parts are written over the header as they are.
const _: () = assert!(size_of::<Begin>() == offset_of!(PacketHeader, timestamp_end));
const _: () = assert!(
    offset_of!(PacketHeader, timestamp_end) + size_of::<End>()
        == offset_of!(PacketHeader, packet_seq_num)
);

/// Size of the part of a packet that readers move out, given its content: whole pages, for splice.
pub fn size<P: WritePlatform>(content: u64) -> u64 {
    content.next_multiple_of(P::PAGE_SIZE)
}

/// Writes the header fields that are known when a packet is opened.
pub(super) fn open<P: WritePlatform>(
    memory: &Memory<P::Pages>,
    opened: &Opened<'_, P>,
    identity: Identity,
) {
    let at = |offset: usize| opened.memory.wrapping_add(offset as u64);
    let Identity {
        cpu,
        uuid,
        stream_id,
    } = identity;
    memory.write(
        opened.memory,
        Begin {
            magic: MAGIC,
            uuid,
            stream_id,
            stream_instance_id: u64::from(cpu),
            timestamp_begin: opened.time,
        },
    );
    memory.write(
        at(offset_of!(PacketHeader, packet_seq_num)),
        opened.sequence,
    );
    memory.write(at(offset_of!(PacketHeader, cpu_id)), cpu);
}

/// Writes the header fields that are known when a packet is closed.
pub(super) fn close<P: WritePlatform>(memory: &Memory<P::Pages>, closed: &Closed<'_, P>) {
    let at = |offset: usize| closed.memory.wrapping_add(offset as u64);
    memory.write(
        at(offset_of!(PacketHeader, timestamp_end)),
        End {
            timestamp_end: closed.time,
            content_size: closed.content.wrapping_mul(8),
            packet_size: size::<P>(closed.content).wrapping_mul(8),
        },
    );
    memory.write(
        at(offset_of!(PacketHeader, events_discarded)),
        closed.discarded,
    );
}
