// SPDX-License-Identifier: GPL-2.0

//! Sub-buffers of ftrace's ring buffer: a header, and records one after the other.
//!
//! A record begins with 32 bits: five for its kind or length, and 27 for the time since the record before.

use super::format::field;

/// Bits of the time in a record's first word.
const TIME_BITS: u32 = 27;

/// Kinds in a record's first word. Smaller ones are lengths in words.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

/// Bits of the size in a sub-buffer's header.
const SIZE: u32 = (1 << 27) - 1;
/// Events are missing before the sub-buffer.
const MISSED: u32 = 1 << 31;
/// Their number is after the records.
const MISSED_STORED: u32 = 1 << 30;

/// Bits of an absolute time. It lacks the upper ones.
const ABSOLUTE: u64 = (1 << 59) - 1;

/// The layout of a sub-buffer's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLayout {
    /// The place of the first record.
    data: usize,
    /// The place of the size.
    commit: usize,
}

impl Default for PageLayout {
    fn default() -> Self {
        Self {
            data: 16,
            commit: 8,
        }
    }
}

/// A sub-buffer.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// Events that are missing before it.
    pub missed: Missed,
    /// The records.
    records: &'a [u8],
    /// The place of the first record in the sub-buffer.
    data: usize,
    /// The place of the next record.
    at: usize,
    /// The time of the last record.
    time: u64,
}

/// Missing events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// No event is missing.
    None,
    /// This number.
    Events(u64),
    /// Their number is not known.
    Unknown,
}

impl PageLayout {
    /// Parses tracefs's `events/header_page`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let fields: Result<Vec<_>, _> = text.lines().filter_map(field).collect();
        let fields = fields.map_err(|what| format!("the header of sub-buffers has {what}"))?;
        let place = |name: &str, least: u32| {
            let field = fields.iter().find(|field| field.name == name);
            let field = field.filter(|field| field.size >= least && field.offset < 1 << 12);
            field.ok_or_else(|| format!("the header of sub-buffers has no usable `{name}`"))
        };
        if place("timestamp", 8)?.offset != 0 {
            return Err("the header of sub-buffers does not begin with its time".to_owned());
        }
        Ok(Self {
            commit: place("commit", 4)?.offset as usize,
            data: place("data", 1)?.offset as usize,
        })
    }

    /// Opens a sub-buffer.
    pub fn page(self, bytes: &[u8]) -> Result<Page<'_>, String> {
        let short = || format!("a sub-buffer of {} bytes", bytes.len());
        let time = bytes.first_chunk().ok_or_else(short)?;
        let commit = word(bytes, self.commit).ok_or_else(short)?;
        let size = (commit & SIZE) as usize;
        let end = self.data.saturating_add(size);
        let records = bytes
            .get(self.data..end)
            .ok_or_else(|| format!("{size} bytes of records in a sub-buffer of {}", bytes.len()))?;
        let stored = bytes.get(end..).and_then(|rest| rest.first_chunk());
        let missed = match (commit & MISSED != 0, commit & MISSED_STORED != 0, stored) {
            (false, ..) => Missed::None,
            (true, true, Some(count)) => Missed::Events(u64::from_le_bytes(*count)),
            (true, ..) => Missed::Unknown,
        };
        Ok(Page {
            missed,
            records,
            data: self.data,
            at: 0,
            time: u64::from_le_bytes(*time),
        })
    }
}

/// A little-endian word.
#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*word))
}

impl<'a> Page<'a> {
    /// The place in the sub-buffer of the next record.
    pub fn at(&self) -> usize {
        self.data + self.at
    }

    /// The next event: its time and its data.
    #[inline]
    pub fn next(&mut self) -> Result<Option<(u64, &'a [u8])>, String> {
        while self.at < self.records.len() {
            let head = word(self.records, self.at).ok_or("a record without its first word")?;
            let (kind, delta) = (head & 31, u64::from(head >> 5));
            let second = || {
                word(self.records, self.at + 4).ok_or("a record without its second word".to_owned())
            };
            match kind {
                PADDING if delta == 0 => break,
                PADDING => {
                    let size = second()?;
                    self.time = self.time.wrapping_add(delta);
                    self.at = self.at.saturating_add(4).saturating_add(size as usize);
                }
                TIME_EXTEND => {
                    let high = u64::from(second()?) << TIME_BITS;
                    self.time = self.time.wrapping_add(high).wrapping_add(delta);
                    self.at += 8;
                }
                TIME_STAMP => {
                    let low = (u64::from(second()?) << TIME_BITS) | delta;
                    let time = self.time & !ABSOLUTE | low & ABSOLUTE;
                    self.time = match time < self.time {
                        true => time.wrapping_add(ABSOLUTE + 1),
                        false => time,
                    };
                    self.at += 8;
                }
                0 => {
                    let size = second()? as usize;
                    let begin = self.at + 8;
                    let end = (self.at + 4).saturating_add(size);
                    let data = self.records.get(begin..end);
                    let data = data.ok_or_else(|| format!("a record of {size} bytes"))?;
                    self.time = self.time.wrapping_add(delta);
                    self.at = end;
                    return Ok(Some((self.time, data)));
                }
                words => {
                    let begin = self.at + 4;
                    let end = begin + 4 * words as usize;
                    let data = self.records.get(begin..end);
                    let data = data.ok_or_else(|| format!("a record of {words} words"))?;
                    self.time = self.time.wrapping_add(delta);
                    self.at = end;
                    return Ok(Some((self.time, data)));
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(words: &[u32], commit: u32, rest: &[u8]) -> Vec<u8> {
        let mut bytes = 1000_u64.to_le_bytes().to_vec();
        bytes.extend_from_slice(&u64::from(commit).to_le_bytes());
        words
            .iter()
            .for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        bytes.extend_from_slice(rest);
        bytes
    }

    #[test]
    fn records_have_times_and_data() {
        let words = [
            1 | (5 << 5),
            0xaa, // one word, 5 later
            TIME_EXTEND | (1 << 5),
            2, // 1 + (2 << 27)
            (8 << 5) & !31,
            12,
            0xbb,
            0xcc, // 8 later, 8 bytes
            PADDING | (3 << 5),
            4, // removed: 3 later
            TIME_STAMP | (7 << 5),
            16, // absolute
            1,
            0xdd,
            PADDING,
            0,
        ];
        let bytes = page(&words, 4 * words.len() as u32, &[]);
        let mut page = PageLayout::default().page(&bytes).unwrap();
        let base = 1006 + (2 << 27);
        assert_eq!(page.next(), Ok(Some((1005, &0xaa_u32.to_le_bytes()[..]))));
        assert_eq!(
            page.next(),
            Ok(Some((base + 8, &[0xbb, 0, 0, 0, 0xcc, 0, 0, 0][..])))
        );
        assert_eq!(
            page.next(),
            Ok(Some(((16 << 27) + 7, &0xdd_u32.to_le_bytes()[..])))
        );
        assert_eq!(page.next(), Ok(None));
        assert_eq!(page.missed, Missed::None);
    }

    #[test]
    fn missing_events_are_counted() {
        let bytes = page(&[1, 0], 8 | MISSED | MISSED_STORED, &9_u64.to_le_bytes());
        assert_eq!(
            PageLayout::default().page(&bytes).unwrap().missed,
            Missed::Events(9)
        );
        let bytes = page(&[1, 0], 8 | MISSED, &[]);
        assert_eq!(
            PageLayout::default().page(&bytes).unwrap().missed,
            Missed::Unknown
        );
    }

    #[test]
    fn what_does_not_fit_has_a_reason() {
        for words in [&[0, u32::MAX][..], &[28], &[TIME_EXTEND], &[0]] {
            let bytes = page(words, 4 * words.len() as u32, &[]);
            let mut page = PageLayout::default().page(&bytes).unwrap();
            assert!(page.next().is_err(), "{words:?}");
        }
        let bytes = page(&[], 4, &[]);
        assert!(PageLayout::default().page(&bytes).is_err());
        // Removed records beyond the end only end the sub-buffer.
        let bytes = page(&[PADDING | (1 << 5), u32::MAX], 8, &[]);
        assert_eq!(PageLayout::default().page(&bytes).unwrap().next(), Ok(None));
    }

    #[test]
    fn the_layout_is_parsed() {
        let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
            \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
            \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
            \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
        assert_eq!(PageLayout::parse(text), Ok(PageLayout::default()));
        assert!(PageLayout::parse("").is_err());
    }
}
