// SPDX-License-Identifier: GPL-2.0

//! Writing the header of a packet; [`crate::abi::packet`] has the layout.
//!
//! The opener and the closer write different fields: an interrupt may close a packet
//! before the code it interrupted has opened it.

use super::memory::{payload, Memory};
use crate::abi::packet::{PacketHeader, MAGIC, STREAM_ID};
use crate::channel::platform::Kernel;
use crate::ring::reserve::Opened;
use crate::ring::switch::Closed;
use crate::sys::pages::PAGE_SIZE;
use crate::sys::system::Uuid;
use core::mem::offset_of;

payload! {
    struct Identity {
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

// The two parts are laid down over the header as they are.
const _: () = assert!(size_of::<Identity>() == offset_of!(PacketHeader, timestamp_end));
const _: () = assert!(
    offset_of!(PacketHeader, timestamp_end) + size_of::<End>()
        == offset_of!(PacketHeader, packet_seq_num)
);

/// Bytes of a packet that are moved out, given those in use: whole pages, for splice.
pub(crate) fn size(content: u64) -> u64 {
    content.next_multiple_of(PAGE_SIZE as u64)
}

/// Writes what is known when a packet is opened.
pub(crate) fn open(memory: &Memory, opened: &Opened<'_, Kernel>, uuid: Uuid, cpu: u32) {
    let at = |offset: usize| opened.memory.wrapping_add(offset as u64);
    memory.write(
        opened.memory,
        Identity {
            magic: MAGIC,
            uuid,
            stream_id: STREAM_ID,
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

/// Writes what is known when it is closed.
pub(crate) fn close(memory: &Memory, closed: &Closed<'_, Kernel>) {
    let at = |offset: usize| closed.memory.wrapping_add(offset as u64);
    memory.write(
        at(offset_of!(PacketHeader, timestamp_end)),
        End {
            timestamp_end: closed.time,
            content_size: closed.content.wrapping_mul(8),
            packet_size: size(closed.content).wrapping_mul(8),
        },
    );
    memory.write(
        at(offset_of!(PacketHeader, events_discarded)),
        closed.discarded,
    );
}
