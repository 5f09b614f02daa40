// SPDX-License-Identifier: GPL-2.0

//! The packets in memory that outlived its kernel (`rust/abi/region.rs`). Nothing there is believed: the
//! machine may have stopped at any moment, and the memory may have lost bits.

use crate::ctf::{decode, Metadata, PacketAt, Prefix};
use crate::error::{Error, Result};
use crate::uuid::Uuid;
use rtrace_abi::packet::{PacketHeader, MAGIC};
use rtrace_abi::region::{checksum, Header, MetadataWords, NoHeader, Place, METADATA_AT, PAGE};
use rtrace_ring::image::Image;
use std::collections::BTreeMap;
use std::path::Path;

/// The most that is believed of a buffer's sizes.
const LARGEST_SUBBUF: u64 = 1 << 30;

/// What is in a region.
#[derive(Debug)]
pub struct Region<'a> {
    bytes: &'a [u8],
    header: Header,
    text: &'a str,
    metadata: Metadata,
}

/// A buffer's packets, in their order.
#[derive(Debug, Default)]
pub struct Stream<'a> {
    /// They.
    pub packets: Vec<Packet<'a>>,
    /// What was there and cannot be read.
    pub damaged: Vec<String>,
    /// Records that were committed to the packet that was being written, and cannot be told from one that
    /// was not.
    pub torn: u64,
}

/// A packet of a [`Stream`].
#[derive(Debug)]
pub struct Packet<'a> {
    /// Its header, which is complete even if the one in memory was not.
    pub header: PacketHeader,
    /// What is behind the header, to the end of the content.
    pub events: &'a [u8],
}

impl<'a> Region<'a> {
    /// The region that these bytes are.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        Self::try_parse(bytes).map_err(|what| Error::Unrecoverable { what })
    }

    fn try_parse(bytes: &'a [u8]) -> std::result::Result<Self, String> {
        let header = Header::parse(bytes).map_err(|why| match why {
            NoHeader::Empty => "there is no trace".to_owned(),
            NoHeader::Version(version) => format!(
                "what is there has version {version} of the layout, not {}: it takes the rtrace that recorded it",
                rtrace_abi::region::VERSION
            ),
            NoHeader::Damaged => "its header is damaged".to_owned(),
        })?;
        if header.size != bytes.len() as u64 {
            return Err(format!(
                "the memory had {} bytes, and has {} now",
                header.size,
                bytes.len()
            ));
        }
        let (size, count) = (header.subbuf_size, header.subbuf_count);
        if !size.is_power_of_two() || !(PAGE..=LARGEST_SUBBUF).contains(&size) {
            return Err(format!("sub-buffers of {size} bytes"));
        }
        if !count.is_power_of_two() || count < 2 {
            return Err(format!("{count} sub-buffers"));
        }
        let text = metadata(bytes, &header).ok_or("its metadata are damaged")?;
        let metadata = Metadata::parse(text).map_err(|error| error.to_string())?;
        if metadata.uuid.into_bytes() != header.uuid {
            return Err("its metadata are of another trace".to_owned());
        }
        Ok(Self {
            bytes,
            header,
            text,
            metadata,
        })
    }

    /// The trace.
    pub fn uuid(&self) -> Uuid {
        self.metadata.uuid
    }

    /// Its description.
    pub fn metadata(&self) -> &'a str {
        self.text
    }

    /// The channel.
    pub fn channel(&self) -> Result<&str> {
        let name = self.header.name().filter(|name| {
            let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            !name.is_empty() && !name.starts_with('.') && name.chars().all(is_of_name)
        });
        name.ok_or_else(|| Error::Unrecoverable {
            what: "its channel has no name".to_owned(),
        })
    }

    /// The packets, by CPU.
    pub fn streams(&self) -> BTreeMap<u32, Stream<'a>> {
        let table = usize::try_from(self.header.table_at);
        let table = table
            .ok()
            .and_then(|at| self.bytes.get(at..))
            .unwrap_or(&[]);
        let places = table.chunks_exact(Place::SIZE).map_while(Place::parse);
        let mut streams = BTreeMap::new();
        for place in places.take(usize::try_from(self.header.table_room).unwrap_or(0)) {
            // The last: memory for another may not have sufficed.
            streams.insert(place.cpu, self.stream(place));
        }
        streams
    }

    fn stream(&self, place: Place) -> Stream<'a> {
        let mut stream = Stream::default();
        let Some((slots, subbufs)) = self.buffer(place) else {
            stream
                .damaged
                .push("a buffer outside of the memory".to_owned());
            return stream;
        };
        let Header {
            subbuf_size: size,
            subbuf_count: count,
            ..
        } = self.header;
        let mut open = Vec::new();
        for slot in slots.chunks_exact(Image::SIZE).take(count as usize) {
            let image = slot
                .first_chunk()
                .and_then(|slot| Image::read(slot, size, count));
            let subbuf = |memory: u64| {
                let at = usize::try_from(memory.checked_mul(size)?).ok()?;
                subbufs.get(at..)?.get(..size as usize)
            };
            let packet = match image {
                None => Err("a slot that no writer leaves so".to_owned()),
                Some(Image::Empty) => continue,
                Some(Image::Finished { memory, .. }) => self.finished(place, subbuf(memory)),
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
            match self.open(place, subbuf, committed, records) {
                Some(packet) => stream.packets.push(packet),
                None => stream.torn = stream.torn.saturating_add(records),
            }
        }
        stream.order();
        stream
    }

    /// A buffer's slots and sub-buffers.
    fn buffer(&self, place: Place) -> Option<(&'a [u8], &'a [u8])> {
        let slots = self.header.slots_bytes(Image::SIZE as u64)?;
        let bytes = self.header.buffer_bytes(Image::SIZE as u64)?;
        let at = usize::try_from(place.at).ok()?;
        let buffer = self.bytes.get(at..)?.get(..usize::try_from(bytes).ok()?)?;
        buffer.split_at_checked(usize::try_from(slots).ok()?)
    }

    fn finished(
        &self,
        place: Place,
        subbuf: Option<&'a [u8]>,
    ) -> std::result::Result<Packet<'a>, String> {
        let subbuf = subbuf.ok_or("a packet outside of the memory")?;
        let bytes = subbuf.first_chunk().ok_or("a packet without a header")?;
        let at = PacketAt::decode(bytes, Path::new("packet"), 0, Some(self.uuid()))
            .map_err(|error| error.to_string())?;
        let events = usize::try_from(at.content()).ok();
        let events = events.and_then(|end| subbuf.get(PacketHeader::SIZE..end));
        let events = events.filter(|_| at.size() <= subbuf.len() as u64);
        let events = events.ok_or("a packet that is larger than its sub-buffer")?;
        if !self.is_of_this(place, &at.header) {
            return Err("a packet of another stream".to_owned());
        }
        Ok(Packet {
            header: at.header,
            events,
        })
    }

    fn is_of_this(&self, place: Place, header: &PacketHeader) -> bool {
        let (cpu, instance) = (header.cpu_id, header.stream_instance_id);
        header.stream_id == self.header.stream_id
            && cpu == place.cpu
            && instance == u64::from(place.cpu)
    }

    /// The packet that was being written, of which so many bytes and records were committed; none if
    /// these are not what it begins with: then somewhere is one that was not.
    fn open(
        &self,
        place: Place,
        subbuf: &'a [u8],
        committed: u64,
        records: u64,
    ) -> Option<Packet<'a>> {
        let content = subbuf.get(..usize::try_from(committed).ok()?)?;
        let mut header = decode(content.first_chunk()?);
        // What is known when a packet is closed is of the packet before in this memory.
        header.events_discarded = 0;
        let (magic, uuid) = (header.magic, header.uuid);
        if magic != MAGIC || uuid != self.header.uuid || !self.is_of_this(place, &header) {
            return None;
        }
        let at = PacketAt { offset: 0, header };
        let prefix = Prefix::of(&self.metadata, &at, content)?;
        if prefix.content != committed || prefix.events != records || records == 0 {
            return None;
        }
        header.timestamp_end = prefix.last;
        header.content_size = committed * 8;
        header.packet_size = committed.next_multiple_of(PAGE) * 8;
        Some(Packet {
            header,
            events: content.get(PacketHeader::SIZE..)?,
        })
    }
}

impl Stream<'_> {
    /// Brings the packets into their order, and leaves out what cannot be behind the one before.
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
            // That which was being written does not know it yet.
            discarded = discarded.max(header.events_discarded);
            header.events_discarded = discarded;
            true
        });
    }
}

/// The text that was written last.
fn metadata<'a>(bytes: &'a [u8], header: &Header) -> Option<&'a str> {
    let words = MetadataWords::parse(bytes.get(METADATA_AT as usize..)?)?;
    let text = words.writes % 2;
    let (len, sum) = *words.texts.get(text as usize)?;
    let at = text
        .checked_mul(header.metadata_room)?
        .checked_add(header.metadata_at)?;
    if words.writes == 0 || len > header.metadata_room {
        return None;
    }
    let text = bytes
        .get(usize::try_from(at).ok()?..)?
        .get(..usize::try_from(len).ok()?)?;
    let text = (checksum(text) == sum).then_some(text)?;
    std::str::from_utf8(text).ok()
}
