// SPDX-License-Identifier: GPL-2.0

//! The header of every packet: CTF 1.8 packet header and packet context, byte-packed, little
//! endian, with LTTng's layout.

/// First word of every packet.
pub const MAGIC: u32 = 0xC1FC_1FC1;

/// Identifies a trace.
pub type Uuid = [u8; 16];

/// Packet header and packet context.
///
/// The part up to `timestamp_begin` is written when a packet is opened, the rest when it is closed.
#[repr(C, packed)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHeader {
    /// [`MAGIC`].
    pub magic: u32,
    /// Identifies the trace; equals `trace.uuid` of the metadata.
    pub uuid: Uuid,
    /// Stream class: the channel.
    pub stream_id: u32,
    /// Stream within the class: the CPU.
    pub stream_instance_id: u64,
    /// Clock value of the reservation that opened the packet.
    pub timestamp_begin: u64,
    /// Clock value of the reservation that closed the packet, or of the trace's stop if that was
    /// earlier. It is not before any record of the packet, and not after any record of the next one.
    pub timestamp_end: u64,
    /// Number of bits that contain headers and records.
    pub content_size: u64,
    /// Number of bits to the next packet.
    pub packet_size: u64,
    /// Number of the packet in its stream, from 0; a gap means an overwritten packet.
    pub packet_seq_num: u64,
    /// Number of records discarded on this stream since the trace began, when the packet was
    /// closed.
    pub events_discarded: u64,
    /// The CPU.
    pub cpu_id: u32,
}

impl PacketHeader {
    /// Size in bytes.
    pub const SIZE: usize = size_of::<Self>();
}
