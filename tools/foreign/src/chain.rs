// SPDX-License-Identifier: GPL-2.0

//! The headers of a stream's packets, one after the other.

use ctf::PacketAt;
use rtrace_abi::packet::{PacketHeader, MAGIC};
use std::ops::Range;
use uuid::Uuid;

/// The headers of a stream's packets. It counts the packets and the losses, so that readers find the losses between
/// two packets.
#[derive(Clone, Debug)]
pub struct Chain {
    uuid: Uuid,
    /// The stream class.
    class: u32,
    /// The number of the stream in its class.
    instance: u64,
    /// The CPU.
    cpu: u32,
    /// The number of the next packet.
    number: u64,
    /// The number of lost events so far.
    discarded: u64,
    /// The end of the last packet.
    end: u64,
}

impl Chain {
    /// Begins a stream.
    pub fn new(uuid: Uuid, class: u32, instance: u64, cpu: u32) -> Self {
        Self {
            uuid,
            class,
            instance,
            cpu,
            number: 0,
            discarded: 0,
            end: 0,
        }
    }

    /// The end of the last packet: no later packet begins earlier.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Notes that the stream was read up to a time, without its packets.
    pub fn pass(&mut self, time: u64) {
        self.end = self.end.max(time);
    }

    /// Notes that packets are missing before the next one.
    pub fn lost_packets(&mut self, packets: u64) {
        self.number = self.number.saturating_add(packets);
    }

    /// Notes that events are missing between the end of the last packet and the end of the next one.
    pub fn lost_events(&mut self, events: u64) {
        self.discarded = self.discarded.saturating_add(events);
    }

    /// The next packet. It has `content` bytes of events in the range `time` of the clock, from the bytes `from` of the
    /// foreign file.
    pub fn packet(&mut self, time: Range<u64>, content: usize, from: Range<u64>) -> PacketAt {
        let begin = time.start.max(self.end);
        let end = time.end.max(begin);
        let header = PacketHeader {
            magic: MAGIC,
            uuid: self.uuid.into_bytes(),
            stream_id: self.class,
            stream_instance_id: self.instance,
            timestamp_begin: begin,
            timestamp_end: end,
            content_size: 8 * (PacketHeader::SIZE + content) as u64,
            packet_size: 8 * (from.end - from.start),
            packet_seq_num: self.number,
            events_discarded: self.discarded,
            cpu_id: self.cpu,
        };
        self.number = self.number.saturating_add(1);
        self.end = end;
        PacketAt {
            offset: from.start,
            header,
        }
    }
}
