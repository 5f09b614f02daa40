// SPDX-License-Identifier: GPL-2.0

//! A region of memory in which a channel's trace outlives the kernel that recorded it.
//!
//! ```text
//! 0                    Header
//! METADATA_AT          MetadataWords: which of the two texts is the metadata, and the length of both
//! header.table_at      a Place for each buffer
//! header.metadata_at   the two texts, metadata_room bytes each
//! place.at             a buffer: its slots; at the next page its sub-buffers and the reader's
//! ```
//!
//! All numbers are little endian. The ring defines the words of a slot (`ring/image.rs`). A reader
//! must validate every value.

use super::packet::Uuid;

/// The first bytes of a region with a trace.
pub const MAGIC: [u8; 8] = *b"rtraceM\x1a";

/// Version of this layout, and of the slots' layout.
pub const VERSION: u32 = 1;

/// The smallest size of a kernel's pages, in bytes.
#[cfg(not(MODULE))]
pub const PAGE: u64 = 4096;

/// Maximum size of a channel's name in bytes.
pub const NAME_MAX: usize = 64;

/// The properties of a trace that are known when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionHeader {
    /// Size of the region in bytes.
    pub size: u64,
    /// Identifies the trace.
    pub uuid: Uuid,
    /// Id of the boot that recorded the trace, as text.
    pub boot_id: [u8; 36],
    /// The channel's stream class in the metadata.
    pub stream_id: u32,
    /// Size of a sub-buffer in bytes.
    pub subbuf_size: u64,
    /// Number of sub-buffers of a buffer, without the reader's.
    pub subbuf_count: u64,
    /// Offset of the table of buffers, which is on the second page: the size of the recording kernel's pages. Each
    /// offset in the region is a multiple of it.
    pub table_at: u64,
    /// Capacity of the table.
    pub table_room: u64,
    /// Offset of the first text.
    pub metadata_at: u64,
    /// Capacity of a text in bytes.
    pub metadata_room: u64,
    /// The channel's name; zeros follow.
    pub name: [u8; NAME_MAX],
}

/// Reason for which a region has no readable header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoHeader {
    /// The region has no trace.
    Empty,
    /// The header is of another version.
    Version(u32),
    /// Its checksum is wrong.
    Damaged,
}

impl RegionHeader {
    /// Size in bytes.
    pub const SIZE: usize = 200;

    const CHECKED: usize = Self::SIZE - 8;

    /// The header as it lies in memory.
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let mut rest = bytes.as_mut_slice();
        let mut put = |field: &[u8]| {
            let (to, behind) = core::mem::take(&mut rest).split_at_mut(field.len());
            to.copy_from_slice(field);
            rest = behind;
        };
        put(&MAGIC);
        put(&VERSION.to_le_bytes());
        put(&self.stream_id.to_le_bytes());
        put(&self.uuid);
        put(&self.boot_id);
        put(&[0; 4]);
        for word in self.words() {
            put(&word.to_le_bytes());
        }
        put(&self.name);
        let sum = checksum(&bytes[..Self::CHECKED]);
        bytes[Self::CHECKED..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn words(&self) -> [u64; 7] {
        [
            self.size,
            self.subbuf_size,
            self.subbuf_count,
            self.table_at,
            self.table_room,
            self.metadata_at,
            self.metadata_room,
        ]
    }

    /// Parses the header that `bytes` begins with.
    pub fn parse(bytes: &[u8]) -> Result<Self, NoHeader> {
        let mut rest = bytes;
        if take(&mut rest) != Some(MAGIC) {
            return Err(NoHeader::Empty);
        }
        let version = u32::from_le_bytes(take(&mut rest).ok_or(NoHeader::Damaged)?);
        if version != VERSION {
            return Err(NoHeader::Version(version));
        }
        Self::parse_rest(bytes, rest).ok_or(NoHeader::Damaged)
    }

    fn parse_rest(bytes: &[u8], mut rest: &[u8]) -> Option<Self> {
        let rest = &mut rest;
        let stream_id = u32::from_le_bytes(take(rest)?);
        let (uuid, boot_id) = (take(rest)?, take(rest)?);
        let _zero: [u8; 4] = take(rest)?;
        let mut word = || Some(u64::from_le_bytes(take(rest)?));
        let header = Self {
            size: word()?,
            uuid,
            boot_id,
            stream_id,
            subbuf_size: word()?,
            subbuf_count: word()?,
            table_at: word()?,
            table_room: word()?,
            metadata_at: word()?,
            metadata_room: word()?,
            name: take(rest)?,
        };
        let sum = u64::from_le_bytes(take(rest)?);
        (sum == checksum(bytes.get(..Self::CHECKED)?)).then_some(header)
    }

    /// Size of a buffer in bytes; `slot` is the size of a slot. [`None`]: the size overflows.
    pub fn buffer_bytes(&self, slot: u64) -> Option<u64> {
        let subbufs = self.subbuf_count.checked_add(1)?;
        subbufs
            .checked_mul(self.subbuf_size)?
            .checked_add(self.slots_bytes(slot)?)
    }

    /// Size of a buffer's slots in bytes, with padding up to its sub-buffers; `slot` is the size of
    /// a slot. [`None`]: the size overflows.
    pub fn slots_bytes(&self, slot: u64) -> Option<u64> {
        self.subbuf_count
            .checked_mul(slot)?
            .checked_next_multiple_of(self.table_at)
    }
}

/// Offset of the [`MetadataWords`].
pub const METADATA_AT: u64 = 512;

/// State of the two texts, of which one is the metadata. The writer writes them in turn: first the
/// text, then its length and checksum, then `writes`. So one text is always complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetadataWords {
    /// Number of texts written: the last one is text `writes % 2`. 0: there is none.
    pub writes: u64,
    /// Length in bytes and checksum, of each text.
    pub texts: [(u64, u64); 2],
}

impl MetadataWords {
    /// Size in bytes.
    pub const SIZE: usize = 40;

    /// The words as they lie in memory.
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let [(len0, sum0), (len1, sum1)] = self.texts;
        let mut bytes = [0; Self::SIZE];
        let words = [self.writes, len0, sum0, len1, sum1];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Parses the words that `bytes` begins with.
    #[cfg(not(MODULE))]
    pub fn parse(mut bytes: &[u8]) -> Option<Self> {
        let mut word = || Some(u64::from_le_bytes(take(&mut bytes)?));
        Some(Self {
            writes: word()?,
            texts: [(word()?, word()?), (word()?, word()?)],
        })
    }
}

/// A buffer's entry in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferPlace {
    /// Offset of the buffer, page-aligned.
    pub at: u64,
    /// The CPU.
    pub cpu: u32,
}

impl BufferPlace {
    /// Size in bytes.
    pub const SIZE: usize = 16;

    /// The place as it lies in memory.
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..8].copy_from_slice(&self.at.to_le_bytes());
        bytes[8..].copy_from_slice(&u64::from(self.cpu).to_le_bytes());
        bytes
    }

    /// Parses the place that `bytes` begins with. [`None`]: no buffer has this place.
    #[cfg(not(MODULE))]
    pub fn parse(mut bytes: &[u8]) -> Option<Self> {
        let at = u64::from_le_bytes(take(&mut bytes)?);
        let cpu = u64::from_le_bytes(take(&mut bytes)?).try_into().ok()?;
        (at != 0).then_some(Self { at, cpu })
    }
}

pub(super) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

/// Computes a checksum (FNV-1a). It detects damage, but not an attack.
pub fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> RegionHeader {
        let mut name = [0; NAME_MAX];
        name[..8].copy_from_slice(b"channel0");
        RegionHeader {
            size: 1 << 26,
            uuid: [7; 16],
            boot_id: [b'b'; 36],
            stream_id: 3,
            subbuf_size: 1 << 16,
            subbuf_count: 4,
            table_at: PAGE,
            table_room: 2,
            metadata_at: 2 * PAGE,
            metadata_room: 3 * PAGE,
            name,
        }
    }

    #[test]
    fn header_comes_back() {
        let bytes = header().to_bytes();
        assert_eq!(RegionHeader::parse(&bytes), Ok(header()));
        assert!(RegionHeader::SIZE as u64 <= METADATA_AT);
    }

    #[test]
    fn any_other_byte_is_noticed() {
        let bytes = header().to_bytes();
        for at in 0..bytes.len() {
            let mut other = bytes;
            other[at] ^= 1;
            let expected = match at {
                0..8 => NoHeader::Empty,
                8 => NoHeader::Version(VERSION ^ 1),
                9..12 => NoHeader::Version(VERSION ^ (1 << (8 * (at - 8)))),
                _ => NoHeader::Damaged,
            };
            assert_eq!(RegionHeader::parse(&other), Err(expected), "byte {at}");
        }
        for len in 0..bytes.len() {
            assert!(RegionHeader::parse(&bytes[..len]).is_err());
        }
    }

    #[test]
    fn sub_buffers_begin_at_a_page_of_the_kernel() {
        let large = RegionHeader {
            table_at: 4 * PAGE,
            ..header()
        };
        assert_eq!(header().slots_bytes(64), Some(PAGE));
        assert_eq!(large.slots_bytes(64), Some(4 * PAGE));
        let nowhere = RegionHeader {
            table_at: 0,
            ..header()
        };
        assert_eq!(nowhere.slots_bytes(64), None);
    }

    #[test]
    fn other_parts_come_back() {
        let words = MetadataWords {
            writes: 5,
            texts: [(1, 2), (3, 4)],
        };
        assert_eq!(MetadataWords::parse(&words.to_bytes()), Some(words));
        let place = BufferPlace { at: PAGE, cpu: 9 };
        assert_eq!(BufferPlace::parse(&place.to_bytes()), Some(place));
        assert_eq!(BufferPlace::parse(&[0; BufferPlace::SIZE]), None);
    }
}
