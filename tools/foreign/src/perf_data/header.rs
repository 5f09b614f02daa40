// SPDX-License-Identifier: GPL-2.0

//! The header of a `perf.data`, its attributes, and the sections that tell about the machine. A file that perf wrote
//! into a pipe has them in records.

use super::attribute::{Attribute, LEAST};
use super::records::{self, Reader};
use crate::bytes::{Cursor, Source};
use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;
use system::Result;

/// The first bytes of a file.
pub const MAGIC: &[u8; 8] = b"PERFILE2";
/// The first bytes of a file of a machine with the other order of bytes.
pub const OTHER_MAGIC: &[u8; 8] = b"2ELIFREP";

/// The maximum number of events.
const EVENTS: usize = 1 << 16;

/// Numbers of sections.
const TRACING_DATA: u8 = 1;
const BUILD_IDS: u8 = 2;
const HOST: u8 = 3;
const RELEASE: u8 = 4;
const MACHINE: u8 = 6;
const EVENT_NAMES: u8 = 12;
const DIRECTORY: u8 = 24;
const CLOCK: u8 = 29;

/// The bit of a build id's record that its length is in it.
const HAS_SIZE: u16 = 1 << 15;

/// Facts about the records of a file.
#[derive(Debug, Default)]
pub struct Header {
    /// The recorded events.
    pub attributes: Vec<Attribute>,
    /// The records.
    pub data: Range<u64>,
    /// Whether perf did not finish the file.
    pub is_cut: bool,
    /// The description of tracepoints, and its offset.
    pub tracing: Option<(u64, Vec<u8>)>,
    /// The name of the machine.
    pub host: Option<String>,
    /// The kernel's release.
    pub release: Option<String>,
    /// The kind of machine.
    pub machine: Option<String>,
    /// The time since the epoch and that of the trace's clock, at one moment.
    pub clock: Option<(u64, u64)>,
    /// Build ids by path.
    pub build_ids: HashMap<String, String>,
}

/// Reads the header of a file. It begins with [`MAGIC`].
pub fn read(source: &Source) -> Result<Header> {
    let mut at = Cursor::new(source, MAGIC.len() as u64);
    let size = at.u64()?;
    let mut this = Header::default();
    if size == 16 {
        this.data = size..source.length;
        this.pipe(source)?;
        return Ok(this);
    }
    let attribute_size = at.u64()?;
    let (attributes, data) = (section(&mut at)?, section(&mut at)?);
    at.skip(16)?;
    let mut sections = Vec::new();
    for word in 0..4 {
        let bits = at.u64()?;
        sections.extend(
            (0..64)
                .filter(|bit| (bits >> bit) & 1 != 0)
                .map(|bit| 64 * word + bit),
        );
    }
    this.attributes(source, attributes, attribute_size)?;
    // perf writes the size at its end.
    this.is_cut = data.is_empty() && data.start < source.length;
    this.data = match this.is_cut {
        true => data.start..source.length,
        false => data,
    };
    if this.data.end > source.length {
        return Err(source.wrong(
            this.data.start,
            "records that end after the end of the file",
        ));
    }
    if !this.is_cut {
        let mut at = Cursor::new(source, this.data.end);
        for number in sections {
            let place = section(&mut at)?;
            this.section(number, source, place)?;
        }
    }
    Ok(this)
}

/// Reads the place of a section.
fn section(at: &mut Cursor<'_>) -> Result<Range<u64>> {
    let (offset, size) = (at.u64()?, at.u64()?);
    match offset.checked_add(size) {
        Some(end) => Ok(offset..end),
        None => Err(at.wrong(format!("a section of {size} bytes at byte {offset}"))),
    }
}

impl Header {
    fn attributes(&mut self, source: &Source, place: Range<u64>, size: u64) -> Result<()> {
        let least = LEAST as u64 + 16;
        let count = (place.end - place.start) / size.max(1);
        if size < least || size > 1 << 16 || count > EVENTS as u64 {
            let what = format!("{count} events with attributes of {size} bytes");
            return Err(source.wrong(place.start, what));
        }
        for number in 0..count {
            let offset = place.start + number * size;
            let bytes = source.bytes(offset, size)?;
            let Some(mut attribute) = Attribute::parse(&bytes) else {
                return Err(source.wrong(offset, "attributes that are too short"));
            };
            let mut at = Cursor::new(source, offset + size - 16);
            let ids = section(&mut at)?;
            attribute.ids = longs(&source.bytes(ids.start, ids.end - ids.start)?);
            self.attributes.push(attribute);
        }
        Ok(())
    }

    /// Reads a section.
    fn section(&mut self, number: u8, source: &Source, place: Range<u64>) -> Result<()> {
        let is_known = matches!(
            number,
            TRACING_DATA | BUILD_IDS | HOST | RELEASE | MACHINE | EVENT_NAMES | DIRECTORY | CLOCK
        );
        if is_known {
            let bytes = source.bytes(place.start, place.end - place.start)?;
            self.known(number, source, place.start, bytes)?;
        }
        Ok(())
    }

    fn known(&mut self, number: u8, source: &Source, offset: u64, bytes: Vec<u8>) -> Result<()> {
        let mut at = Cursor::of_section(source, offset, &bytes);
        match number {
            TRACING_DATA => self.tracing = Some((offset, bytes)),
            BUILD_IDS => self.build_ids(&bytes),
            HOST => self.host = Some(text(&mut at)?),
            RELEASE => self.release = Some(text(&mut at)?),
            MACHINE => self.machine = Some(text(&mut at)?),
            EVENT_NAMES => self.names(&mut at)?,
            DIRECTORY => {
                let what = "a perf.data of a recording by several threads (--threads), which rtrace does not read";
                return Err(at.wrong(what));
            }
            CLOCK => {
                at.skip(8)?;
                self.clock = Some((at.u64()?, at.u64()?));
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads the names of events.
    fn names(&mut self, at: &mut Cursor<'_>) -> Result<()> {
        let (count, size) = (at.u32()?, at.u32()?);
        for _ in 0..count {
            at.skip(size.into())?;
            let ids = at.u32()?;
            let name = text(at)?;
            let ids = longs(&at.bytes(8 * u64::from(ids))?);
            for attribute in &mut self.attributes {
                if attribute.name.is_empty() && attribute.ids == ids {
                    attribute.name.clone_from(&name);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Reads build ids: each is a record with a process, 24 bytes, and a path.
    fn build_ids(&mut self, mut bytes: &[u8]) {
        while let Some(head) = bytes.first_chunk::<36>() {
            let misc = u16::from_le_bytes([head[4], head[5]]);
            let size = usize::from(u16::from_le_bytes([head[6], head[7]]));
            let Some((record, rest)) = bytes.split_at_checked(size).filter(|_| size > 36) else {
                return;
            };
            bytes = rest;
            let length = match misc & HAS_SIZE {
                0 => 20,
                _ => usize::from(head[32]).min(20),
            };
            let path = &record[36..];
            let end = memchr::memchr(0, path).unwrap_or(path.len());
            let path = String::from_utf8_lossy(&path[..end]).into_owned();
            self.build_ids
                .insert(path, hexadecimal(&head[12..12 + length]));
        }
    }

    /// Reads the records of a pipe that tell what a file has in sections.
    fn pipe(&mut self, source: &Source) -> Result<()> {
        let mut records = Reader::new(source, self.data.clone());
        while let Some(record) = records.next(source)? {
            let body = records.body();
            match record.kind {
                records::ATTRIBUTE => {
                    let parsed = Attribute::parse(body).zip(Attribute::size(body));
                    let Some((mut attribute, size)) = parsed else {
                        return Err(source.wrong(record.offset, "attributes that are too short"));
                    };
                    attribute.ids = longs(body.get(size..).unwrap_or_default());
                    self.attributes.push(attribute);
                    if self.attributes.len() > EVENTS {
                        return Err(source.wrong(record.offset, "too many events"));
                    }
                }
                records::TRACING_DATA => {
                    let size = body
                        .first_chunk()
                        .map_or(0, |size| u32::from_le_bytes(*size));
                    let offset = record.offset + record.size;
                    self.tracing = Some((offset, source.bytes(offset, size.into())?));
                }
                records::SECTION => {
                    if let Some((number, bytes)) = body.split_first_chunk() {
                        let number = u64::from_le_bytes(*number);
                        let number = u8::try_from(number).unwrap_or(0);
                        let (offset, bytes) = (record.offset, bytes.to_vec());
                        self.known(number, source, offset, bytes)?;
                    }
                }
                records::BUILD_ID => {
                    let mut whole = record.head().to_vec();
                    whole.extend_from_slice(body);
                    self.build_ids(&whole);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Reads a text with its length before it.
fn text(at: &mut Cursor<'_>) -> Result<String> {
    let size = at.u32()?;
    at.text(size.into())
}

fn longs(bytes: &[u8]) -> Vec<u64> {
    let long = |bytes: &[u8]| u64::from_le_bytes(bytes.first_chunk().copied().unwrap_or_default());
    bytes.chunks_exact(8).map(long).collect()
}

/// The digits of an id.
pub fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        // A String takes all.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
