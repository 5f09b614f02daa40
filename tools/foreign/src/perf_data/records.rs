// SPDX-License-Identifier: GPL-2.0

//! Reads the records of a file, one after the other.

use crate::bytes::Source;
use std::io::{self, Read, Write};
use std::ops::Range;
use system::{Error, Result};

/// Kinds of records that the kernel writes.
pub const MMAP: u32 = 1;
pub const LOST: u32 = 2;
pub const NAME: u32 = 3;
pub const EXIT: u32 = 4;
pub const THROTTLE: u32 = 5;
pub const UNTHROTTLE: u32 = 6;
pub const FORK: u32 = 7;
pub const SAMPLE: u32 = 9;
pub const MMAP2: u32 = 10;
pub const LOST_SAMPLES: u32 = 13;

/// The first kind of record that perf writes.
pub const OF_PERF: u32 = 64;
/// Attributes of an event.
pub const ATTRIBUTE: u32 = 64;
/// The description of tracepoints, after the record.
pub const TRACING_DATA: u32 = 66;
/// A build id.
pub const BUILD_ID: u32 = 67;
/// Data of a processor's trace, after the record.
const AUX: u32 = 71;
/// A section of the file.
pub const SECTION: u32 = 80;
/// Compressed records.
const COMPRESSED: u32 = 81;
/// Compressed records with their size.
const COMPRESSED_SIZED: u32 = 83;

/// Bytes of a record's head.
const HEAD: u64 = 8;

/// Bytes that are read at once: several of the largest records.
const WINDOW: u64 = 1 << 20;

/// The maximum number of bytes for each byte of a compressed file.
const RATIO: u64 = 1 << 10;

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its kind.
    pub kind: u32,
    /// More about its kind.
    pub misc: u16,
    /// The offset in the file.
    pub offset: u64,
    /// Its bytes, with the head.
    pub size: u64,
}

impl Record {
    /// The head of the record.
    pub fn head(&self) -> [u8; HEAD as usize] {
        let mut head = [0; HEAD as usize];
        head[..4].copy_from_slice(&self.kind.to_le_bytes());
        head[4..6].copy_from_slice(&self.misc.to_le_bytes());
        head[6..].copy_from_slice(&(self.size as u16).to_le_bytes());
        head
    }
}

/// The records in a range of a file.
#[derive(Debug, Default)]
pub struct Reader {
    /// The next record, and the end of the range.
    at: u64,
    end: u64,
    window: Vec<u8>,
    /// The offset in the file of the window.
    begin: u64,
    /// The place in the window of the last record's body.
    body: Range<usize>,
}

impl Reader {
    /// Reads a range.
    pub fn new(source: &Source, range: Range<u64>) -> Self {
        Self {
            at: range.start,
            end: range.end.min(source.length),
            ..Self::default()
        }
    }

    /// The body of the last record.
    pub fn body(&self) -> &[u8] {
        self.window.get(self.body.clone()).unwrap_or_default()
    }

    /// Loads bytes of the next record, unless they are in the window.
    fn load(&mut self, source: &Source, bytes: u64) -> Result<usize> {
        let loaded = self.begin + self.window.len() as u64;
        if self.at < self.begin || self.at + bytes > loaded {
            let size = WINDOW.min(self.end - self.at);
            source.read(&mut self.window, self.at, size)?;
            self.begin = self.at;
        }
        Ok((self.at - self.begin) as usize)
    }

    /// The next record.
    pub fn next(&mut self, source: &Source) -> Result<Option<Record>> {
        let left = self.end.saturating_sub(self.at);
        if left == 0 {
            return Ok(None);
        }
        let wrong = |at: u64, what: String| Err(source.wrong(at, what));
        if left < HEAD {
            return wrong(self.at, format!("{left} bytes, which are no record"));
        }
        let place = self.load(source, HEAD)?;
        let head = self.window[place..].first_chunk::<{ HEAD as usize }>();
        let [a, b, c, d, e, f, g, h] = head.copied().unwrap_or_default();
        let record = Record {
            kind: u32::from_le_bytes([a, b, c, d]),
            misc: u16::from_le_bytes([e, f]),
            offset: self.at,
            size: u16::from_le_bytes([g, h]).into(),
        };
        if record.size < HEAD || record.size > left {
            let what = format!("a record of {} bytes, where {left} are left", record.size);
            return wrong(self.at, what);
        }
        let place = self.load(source, record.size)?;
        self.body = place + HEAD as usize..place + record.size as usize;
        self.at += record.size;
        let number = |body: &[u8]| {
            body.first_chunk()
                .map_or(0, |size| u64::from_le_bytes(*size))
        };
        let after = match record.kind {
            TRACING_DATA => (number(self.body()) as u32).div_ceil(8) as u64 * 8,
            AUX => number(self.body()),
            _ => 0,
        };
        if after > self.end - self.at {
            let what = format!(
                "{after} bytes of data after a record, where {} are left",
                self.end - self.at
            );
            return wrong(self.at, what);
        }
        self.at += after;
        Ok(Some(record))
    }
}

/// The compressed bytes in the records of a file.
struct Compressed<'a> {
    source: &'a Source,
    records: Reader,
    part: Vec<u8>,
    at: usize,
    is_over: bool,
}

impl Read for Compressed<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at >= self.part.len() && !self.is_over {
            self.at = 0;
            self.part.clear();
            match self.records.next(self.source).map_err(io::Error::other)? {
                Some(record) => {
                    let bytes = compressed(&record, self.records.body());
                    self.part.extend_from_slice(bytes.unwrap_or_default());
                }
                None => {
                    // perf does not end the stream: this is an empty last block.
                    self.part.extend_from_slice(&[1, 0, 0]);
                    self.is_over = true;
                }
            }
        }
        let count = out.len().min(self.part.len() - self.at);
        out[..count].copy_from_slice(&self.part[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// The compressed bytes of a record. [`None`]: it has none.
fn compressed<'a>(record: &Record, body: &'a [u8]) -> Option<&'a [u8]> {
    match record.kind {
        COMPRESSED => Some(body),
        COMPRESSED_SIZED => {
            let (size, bytes) = body.split_first_chunk()?;
            bytes.get(..usize::try_from(u64::from_le_bytes(*size)).ok()?)
        }
        _ => None,
    }
}

/// Decompresses the compressed records in a range of a file to a file without a name. [`None`]: there are none.
pub fn decompressed(source: &Source, range: Range<u64>) -> Result<Option<Source>> {
    let mut records = Reader::new(source, range.clone());
    let first = loop {
        match records.next(source)? {
            None => return Ok(None),
            Some(record) if compressed(&record, records.body()).is_some() => break record.offset,
            Some(_) => {}
        }
    };
    let why = |cause: io::Error| source.wrong(first, format!("cannot decompress: {cause}"));
    let input = Compressed {
        source,
        records: Reader::new(source, first..range.end),
        part: Vec::new(),
        at: 0,
        is_over: false,
    };
    let decoder = ruzstd::decoding::StreamingDecoder::new(input);
    let mut decoder = decoder.map_err(|cause| why(io::Error::other(cause)))?;
    let write = Error::system("cannot write decompressed records to a temporary file".to_owned());
    let mut file = tempfile::tempfile().map_err(write)?;
    let (mut bytes, mut length) = (vec![0; 1 << 16], 0);
    let most = source.length.saturating_mul(RATIO);
    loop {
        let count = decoder.read(&mut bytes).map_err(why)?;
        if count == 0 {
            break;
        }
        let write =
            Error::system("cannot write decompressed records to a temporary file".to_owned());
        file.write_all(&bytes[..count]).map_err(write)?;
        length += count as u64;
        if length > most {
            return Err(why(io::Error::other(format!(
                "it has more than {most} bytes"
            ))));
        }
    }
    Ok(Some(Source::unnamed(source.path.clone(), file, length)))
}
