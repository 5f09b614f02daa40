// SPDX-License-Identifier: GPL-2.0

//! The packets in a buffer of a crashed kernel. This code trusts no value in the buffer: the machine may have stopped
//! at any moment, and the memory may have lost bits.

use ctf::{decode, Metadata, PacketAt, Prefix};
use rtrace_abi::packet::{PacketHeader, MAGIC};
use rtrace_abi::region::PAGE;
use rtrace_ring::image::Image;
use std::path::Path;

/// The maximum accepted size of a sub-buffer.
const LARGEST_SUBBUF: u64 = 1 << 30;

/// A buffer as the kernel left it.
#[derive(Clone, Copy, Debug)]
pub struct Buffer<'a> {
    /// The CPU that wrote it.
    pub cpu: u32,
    /// Its stream class in the metadata.
    pub stream_id: u32,
    /// Bytes of a sub-buffer.
    pub subbuf_size: u64,
    /// The number of sub-buffers, without the reader's.
    pub subbuf_count: u64,
    /// Bytes of a page. The size of the open packet becomes a multiple of it.
    pub page: u64,
    /// The slots.
    pub slots: &'a [u8],
    /// The sub-buffers of its two banks of memory. A missing bank is empty.
    pub banks: [&'a [u8]; 2],
}

/// A buffer's packets, in their order.
#[derive(Debug, Default)]
pub struct BufferPackets<'a> {
    /// The packets.
    pub packets: Vec<Packet<'a>>,
    /// The parts that cannot be read.
    pub damaged: Vec<String>,
    /// Records that were committed to the open packet, and cannot be told from an uncommitted one.
    pub torn: u64,
}

/// A packet of a [`BufferPackets`].
#[derive(Debug)]
pub struct Packet<'a> {
    /// Its header, which is complete even if the one in memory was not.
    pub header: PacketHeader,
    /// The bytes after the header, to the end of the content.
    pub events: &'a [u8],
}

/// The name of a channel or a session at the beginning of these bytes. [`None`]: it is no valid name.
pub fn name(bytes: &[u8]) -> Option<&str> {
    let end = bytes.iter().position(|&byte| byte == 0);
    let name = std::str::from_utf8(&bytes[..end.unwrap_or(bytes.len())]).ok()?;
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_name = !name.is_empty() && !name.starts_with('.') && name.chars().all(is_of_name);
    is_name.then_some(name)
}

/// The reason why no buffer has this number of sub-buffers of this size.
pub fn refusal(subbuf_size: u64, subbuf_count: u64) -> Option<String> {
    if !subbuf_size.is_power_of_two() || !(PAGE..=LARGEST_SUBBUF).contains(&subbuf_size) {
        return Some(format!("sub-buffers of {subbuf_size} bytes are impossible"));
    }
    if !subbuf_count.is_power_of_two() || subbuf_count < 2 {
        return Some(format!("{subbuf_count} sub-buffers"));
    }
    None
}

impl<'a> Buffer<'a> {
    /// The packets of the trace that has this metadata.
    pub fn stream(&self, metadata: &Metadata) -> BufferPackets<'a> {
        let mut stream = BufferPackets::default();
        let (size, count) = (self.subbuf_size, self.subbuf_count);
        let mut open = Vec::new();
        let [first, second] = self.banks;
        let last = if second.is_empty() {
            count
        } else {
            2 * count + 1
        };
        for slot in self.slots.chunks_exact(Image::SIZE).take(count as usize) {
            let image = slot
                .first_chunk()
                .and_then(|slot| Image::read(slot, size, last));
            let subbuf = |memory: u64| {
                let (bank, index) = match memory.checked_sub(count + 1) {
                    Some(index) => (second, index),
                    None => (first, memory),
                };
                let at = usize::try_from(index.checked_mul(size)?).ok()?;
                bank.get(at..)?.get(..size as usize)
            };
            let packet = match image {
                None => Err("a slot in a state that no writer leaves".to_owned()),
                Some(Image::Empty) => continue,
                Some(Image::Finished { memory, .. }) => self.finished(metadata, subbuf(memory)),
                Some(Image::Open {
                    memory,
                    committed,
                    records,
                }) => {
                    open.extend(subbuf(memory).map(|subbuf| (subbuf, committed, records)));
                    continue;
                }
            };
            match packet {
                Ok(packet) => stream.packets.push(packet),
                Err(what) => stream.damaged.push(what),
            }
        }
        for (subbuf, committed, records) in open {
            match self.open(metadata, subbuf, committed, records) {
                Some(packet) => stream.packets.push(packet),
                None => stream.torn = stream.torn.saturating_add(records),
            }
        }
        stream.order();
        stream
    }

    fn finished(
        &self,
        metadata: &Metadata,
        subbuf: Option<&'a [u8]>,
    ) -> std::result::Result<Packet<'a>, String> {
        let subbuf = subbuf.ok_or("a packet outside of the memory")?;
        let bytes = subbuf.first_chunk().ok_or("a packet without a header")?;
        let at = PacketAt::decode(bytes, Path::new("packet"), 0, Some(metadata.uuid))
            .map_err(|error| error.to_string())?;
        let events = usize::try_from(at.content()).ok();
        let events = events.and_then(|end| subbuf.get(PacketHeader::SIZE..end));
        let events = events.filter(|_| at.size() <= subbuf.len() as u64);
        let events = events.ok_or("a packet that is larger than its sub-buffer")?;
        if !self.is_of_this(&at.header) {
            return Err("a packet of another stream".to_owned());
        }
        Ok(Packet {
            header: at.header,
            events,
        })
    }

    fn is_of_this(&self, header: &PacketHeader) -> bool {
        let (cpu, instance) = (header.cpu_id, header.stream_instance_id);
        header.stream_id == self.stream_id && cpu == self.cpu && instance == u64::from(self.cpu)
    }

    /// The open packet, of which this number of bytes and records was committed. [`None`]: the packet does not begin
    /// with this number of records, so an uncommitted record lies among them.
    fn open(
        &self,
        metadata: &Metadata,
        subbuf: &'a [u8],
        committed: u64,
        records: u64,
    ) -> Option<Packet<'a>> {
        let content = subbuf.get(..usize::try_from(committed).ok()?)?;
        let mut header = decode(content.first_chunk()?);
        // This field is valid after the close of a packet. Until then it has the value of the previous packet in this
        // memory.
        header.events_discarded = 0;
        let (magic, uuid) = (header.magic, header.uuid);
        if magic != MAGIC || uuid != metadata.uuid.into_bytes() || !self.is_of_this(&header) {
            return None;
        }
        let at = PacketAt { offset: 0, header };
        let prefix = Prefix::of(metadata, &at, content)?;
        if prefix.content != committed || prefix.events != records || records == 0 {
            return None;
        }
        header.timestamp_end = prefix.last;
        header.content_size = committed * 8;
        header.packet_size = committed.next_multiple_of(self.page) * 8;
        Some(Packet {
            header,
            events: content.get(PacketHeader::SIZE..)?,
        })
    }
}

impl BufferPackets<'_> {
    /// The result for a buffer that cannot be read.
    pub fn damaged(why: &str) -> Self {
        Self {
            damaged: vec![why.to_owned()],
            ..Self::default()
        }
    }

    /// Sorts the packets, and drops packets that contradict the one before.
    fn order(&mut self) {
        self.packets
            .sort_by_key(|packet| packet.header.packet_seq_num);
        let (mut end, mut next, mut discarded) = (0, 0, 0);
        let damaged = &mut self.damaged;
        self.packets.retain_mut(|packet| {
            let header = &mut packet.header;
            let sequence = header.packet_seq_num;
            if header.timestamp_begin < end || sequence < next {
                damaged.push(format!("packet {sequence} overlaps the one before"));
                return false;
            }
            end = header.timestamp_end;
            next = sequence.saturating_add(1);
            // The open packet does not have this count yet.
            discarded = discarded.max(header.events_discarded);
            header.events_discarded = discarded;
            true
        });
    }
}
