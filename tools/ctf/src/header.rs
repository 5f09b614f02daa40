// SPDX-License-Identifier: GPL-2.0

//! Reads the packet headers of a stream file.

use crate::bytes::Bytes;
use memchr::memmem::Finder;
use rtrace_abi::packet::{PacketHeader, MAGIC};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;
use std::path::Path;
use system::{Error, Result};
use uuid::Uuid;

/// The maximum accepted size of a packet.
const LARGEST: u64 = 1 << 30;

/// The number of bytes that are searched for a header at a time.
const BLOCK: usize = 1 << 16;

/// The number of bytes that are skipped if the disk cannot read them.
const PAGE: usize = 1 << 12;

/// A packet's header and its place in the file.
#[derive(Clone, Copy, Debug)]
pub struct PacketAt {
    /// The offset of its begin.
    pub offset: u64,
    /// Its header.
    pub header: PacketHeader,
}

impl PacketAt {
    /// Its size in bytes, with the padding.
    pub fn size(&self) -> u64 {
        self.header.packet_size / 8
    }

    /// The size of header and events in bytes.
    pub fn content(&self) -> u64 {
        self.header.content_size / 8
    }

    /// The offset of the next packet.
    pub fn end(&self) -> u64 {
        self.offset + self.size()
    }

    /// Parses the header at `offset` of the stream `path`. If `uuid` is given, the header must belong to that trace.
    pub fn decode(
        bytes: &[u8; PacketHeader::SIZE],
        path: &Path,
        offset: u64,
        uuid: Option<Uuid>,
    ) -> Result<Self> {
        let header = decode(bytes);
        match complaint(&header, uuid) {
            None => Ok(Self { offset, header }),
            Some(what) => Err(Error::Corrupt {
                path: path.to_owned(),
                offset,
                what,
            }),
        }
    }
}

/// The headers of a stream file's complete packets, one after the other. `F` is the file, or a reference to it.
#[derive(Debug)]
pub struct PacketHeaders<'a, F> {
    path: Cow<'a, Path>,
    file: F,
    uuid: Option<Uuid>,
    length: u64,
    at: u64,
    /// Finds the first bytes of a header. The first search makes it.
    start: OnceCell<Finder<'static>>,
}

impl<'a, F: Bytes> PacketHeaders<'a, F> {
    /// Begins at the start of `file`, whose name is `path`. If `uuid` is given, every packet must belong to that
    /// trace.
    pub fn new(path: impl Into<Cow<'a, Path>>, file: F, uuid: Option<Uuid>) -> Result<Self> {
        let path = path.into();
        let length = file.length().map_err(Error::read(&path))?;
        Ok(Self {
            path,
            file,
            uuid,
            length,
            at: 0,
            start: OnceCell::new(),
        })
    }

    /// The file's name.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads only these bytes, at whose beginning a packet begins.
    pub(super) fn within(&mut self, range: Range<u64>) {
        self.at = range.start.min(self.length);
        self.length = self.length.min(range.end);
    }

    /// The bytes.
    pub(super) fn file(&self) -> &F {
        &self.file
    }

    /// The bytes.
    pub(super) fn file_mut(&mut self) -> &mut F {
        &mut self.file
    }

    /// Reads up to `length`, the new number of bytes.
    pub(super) fn grow(&mut self, length: u64) {
        self.length = length;
    }

    /// Continues at this offset, where a packet begins.
    pub fn go_to(&mut self, offset: u64) {
        self.at = offset;
    }

    /// The next complete packet. [`None`]: the file ends, or its last packet is incomplete.
    pub fn next_whole(&mut self) -> Result<Option<PacketAt>> {
        let left = self.length.saturating_sub(self.at);
        if left < PacketHeader::SIZE as u64 {
            return Ok(None);
        }
        let mut bytes = [0; PacketHeader::SIZE];
        self.read_exact_at(&mut bytes, self.at)?;
        let packet = PacketAt::decode(&bytes, &self.path, self.at, self.uuid)?;
        if packet.size() > left {
            return Ok(None);
        }
        self.at = packet.end();
        Ok(Some(packet))
    }

    /// The header at `offset`. [`None`]: there is no valid one.
    pub(super) fn peek(&self, offset: u64) -> Option<PacketAt> {
        if self.length.saturating_sub(offset) < PacketHeader::SIZE as u64 {
            return None;
        }
        let mut bytes = [0; PacketHeader::SIZE];
        self.read_exact_at(&mut bytes, offset).ok()?;
        PacketAt::decode(&bytes, &self.path, offset, self.uuid).ok()
    }

    /// Whether the file ends at `offset`, or has too few bytes after it for another header.
    pub(super) fn ends_at(&self, offset: u64) -> bool {
        self.length.saturating_sub(offset) < PacketHeader::SIZE as u64
    }

    /// The next valid header from `offset` on, before `end`. Skips blocks that the disk cannot read.
    pub(super) fn find(&self, offset: u64, end: u64) -> Option<PacketAt> {
        let start = self.start.get_or_init(|| {
            let mut start = MAGIC.to_le_bytes().to_vec();
            start.extend(self.uuid.iter().flat_map(|uuid| uuid.as_bytes()));
            Finder::new(&start).into_owned()
        });
        let rest = start.needle().len() - 1;
        // A header may begin right before the end.
        let end = end.saturating_add(rest as u64).min(self.length);
        let mut block = vec![0; end.saturating_sub(offset).min(BLOCK as u64) as usize];
        let mut at = offset;
        while at < end {
            at = self.file.after_hole(at)?;
            let mut size = end.saturating_sub(at).min(BLOCK as u64) as usize;
            let mut is_read = self.read_exact_at(&mut block[..size], at).is_ok();
            if !is_read && size > PAGE {
                size = PAGE;
                is_read = self.read_exact_at(&mut block[..size], at).is_ok();
            }
            if is_read {
                let found = start.find_iter(&block[..size]);
                let mut valid = found.filter_map(|found| self.peek(at + found as u64));
                if let Some(packet) = valid.next() {
                    return Some(packet);
                }
            }
            // A header's start may lie across two blocks.
            at += size.saturating_sub(rest).max(1) as u64;
        }
        None
    }

    /// Continues at `offset`.
    pub(super) fn seek(&mut self, offset: u64) {
        self.at = offset.min(self.length);
    }

    /// The size of the file in bytes.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// The offset at which the next packet is expected.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Fills `bytes` with the bytes of the file from `offset` on.
    pub(super) fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        let read = self.file.read_exact_at(bytes, offset);
        read.map_err(Error::read(&self.path))
    }

    /// The number of bytes after the last complete packet, after [`Self::next_whole`] has returned [`None`].
    pub fn partial(&self) -> u64 {
        self.length.saturating_sub(self.at)
    }
}

/// The fault of a header. [`None`]: the header is valid.
fn complaint(header: &PacketHeader, uuid: Option<Uuid>) -> Option<String> {
    let PacketHeader {
        magic,
        uuid: own,
        timestamp_begin,
        timestamp_end,
        content_size,
        packet_size,
        ..
    } = *header;
    Some(if magic != MAGIC {
        format!("no packet begins here (magic {magic:#010x}, expected {MAGIC:#010x})")
    } else if uuid.is_some_and(|expected| expected.into_bytes() != own) {
        format!("a packet of another trace ({})", Uuid::from_bytes(own))
    } else if packet_size % 8 != 0 || content_size % 8 != 0 {
        format!("sizes of {content_size} and {packet_size} bits are not whole bytes")
    } else if content_size > packet_size {
        format!("{content_size} bits of content in a packet of {packet_size}")
    } else if content_size < PacketHeader::SIZE as u64 * 8 {
        format!("{content_size} bits of content, less than a packet header")
    } else if packet_size / 8 > LARGEST {
        format!("a packet of {} bytes", packet_size / 8)
    } else if timestamp_begin > timestamp_end {
        format!("a packet that begins at {timestamp_begin} and ends at {timestamp_end}")
    } else {
        return None;
    })
}

/// Parses a header: little endian, without padding.
pub fn decode(bytes: &[u8; PacketHeader::SIZE]) -> PacketHeader {
    let mut rest = bytes.as_slice();
    PacketHeader {
        magic: u32::from_le_bytes(take(&mut rest)),
        uuid: take(&mut rest),
        stream_id: u32::from_le_bytes(take(&mut rest)),
        stream_instance_id: u64::from_le_bytes(take(&mut rest)),
        timestamp_begin: u64::from_le_bytes(take(&mut rest)),
        timestamp_end: u64::from_le_bytes(take(&mut rest)),
        content_size: u64::from_le_bytes(take(&mut rest)),
        packet_size: u64::from_le_bytes(take(&mut rest)),
        packet_seq_num: u64::from_le_bytes(take(&mut rest)),
        events_discarded: u64::from_le_bytes(take(&mut rest)),
        cpu_id: u32::from_le_bytes(take(&mut rest)),
    }
}

/// The bytes of a header: the reverse of [`decode`].
pub fn encode(header: &PacketHeader) -> [u8; PacketHeader::SIZE] {
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
    } = *header;
    let mut bytes = [0; PacketHeader::SIZE];
    let mut rest = bytes.as_mut_slice();
    let mut put = |field: &[u8]| {
        let (to, behind) = std::mem::take(&mut rest).split_at_mut(field.len());
        to.copy_from_slice(field);
        rest = behind;
    };
    put(&magic.to_le_bytes());
    put(&uuid);
    put(&stream_id.to_le_bytes());
    for word in [
        stream_instance_id,
        timestamp_begin,
        timestamp_end,
        content_size,
        packet_size,
        packet_seq_num,
        events_discarded,
    ] {
        put(&word.to_le_bytes());
    }
    put(&cpu_id.to_le_bytes());
    bytes
}

/// The next `N` bytes. They exist, because the header's size is the sum of its fields.
fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let mut out = [0; N];
    if let Some((head, tail)) = rest.split_at_checked(N) {
        out.copy_from_slice(head);
        *rest = tail;
    }
    out
}
