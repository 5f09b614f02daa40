// SPDX-License-Identifier: GPL-2.0

//! The buffers in memory that outlived its kernel (`rust/abi/region.rs`). This code trusts no value in the memory:
//! the machine may have stopped at any moment, and the memory may have lost bits.

use crate::remains::{self, Buffer, BufferPackets};
use ctf::Metadata;
use rtrace_abi::region::{
    checksum, BufferPlace, MetadataWords, NoHeader, RegionHeader, METADATA_AT, PAGE,
};
use rtrace_ring::image::Image;
use std::collections::BTreeMap;
use system::{Error, Result};
use uuid::Uuid;

/// The contents of a region.
#[derive(Debug)]
pub struct Region<'a> {
    bytes: &'a [u8],
    header: RegionHeader,
    text: &'a str,
    metadata: Metadata,
}

impl<'a> Region<'a> {
    /// Parses a region.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        Self::try_parse(bytes).map_err(|what| Error::Unrecoverable { what })
    }

    fn try_parse(bytes: &'a [u8]) -> std::result::Result<Self, String> {
        let header = RegionHeader::parse(bytes).map_err(|why| match why {
            NoHeader::Empty => "there is no trace".to_owned(),
            NoHeader::Version(version) => format!(
                "the buffers have version {version} of the layout, not {}: use the rtrace that recorded them",
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
        if let Some(why) = remains::refusal(header.subbuf_size, header.subbuf_count) {
            return Err(why);
        }
        let page = header.table_at;
        if !page.is_power_of_two() || !(PAGE..=header.subbuf_size).contains(&page) {
            return Err(format!("pages of {page} bytes are impossible"));
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
        remains::name(&self.header.name).ok_or_else(|| Error::Unrecoverable {
            what: "its channel has no name".to_owned(),
        })
    }

    /// The packets, by CPU.
    pub fn streams(&self) -> BTreeMap<u32, BufferPackets<'a>> {
        let table = usize::try_from(self.header.table_at);
        let table = table
            .ok()
            .and_then(|at| self.bytes.get(at..))
            .unwrap_or(&[]);
        let places = table
            .chunks_exact(BufferPlace::SIZE)
            .map_while(BufferPlace::parse);
        let mut streams = BTreeMap::new();
        for place in places.take(usize::try_from(self.header.table_room).unwrap_or(0)) {
            // The last entry of a CPU counts, because there may have been no memory for an earlier one.
            streams.insert(place.cpu, self.stream(place));
        }
        streams
    }

    fn stream(&self, place: BufferPlace) -> BufferPackets<'a> {
        let Some((slots, subbufs)) = self.buffer(place) else {
            return BufferPackets::damaged("a buffer outside of the memory");
        };
        let buffer = Buffer {
            cpu: place.cpu,
            stream_id: self.header.stream_id,
            subbuf_size: self.header.subbuf_size,
            subbuf_count: self.header.subbuf_count,
            page: self.header.table_at,
            slots,
            banks: [subbufs, &[]],
        };
        buffer.stream(&self.metadata)
    }

    /// A buffer's slots and sub-buffers.
    fn buffer(&self, place: BufferPlace) -> Option<(&'a [u8], &'a [u8])> {
        let slots = self.header.slots_bytes(Image::SIZE as u64)?;
        let bytes = self.header.buffer_bytes(Image::SIZE as u64)?;
        let at = usize::try_from(place.at).ok()?;
        let buffer = self.bytes.get(at..)?.get(..usize::try_from(bytes).ok()?)?;
        buffer.split_at_checked(usize::try_from(slots).ok()?)
    }
}

/// The text that was written last.
fn metadata<'a>(bytes: &'a [u8], header: &RegionHeader) -> Option<&'a str> {
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
