// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A record that is being made.

#[cfg(feature = "tracing")]
use std::fmt;
use std::mem::MaybeUninit;

/// Maximum size in bytes of the fields of a record.
const FIELDS_MAX: usize = 1008;

/// Maximum size in bytes of a text, its NUL not included.
const TEXT_MAX: usize = 511;

/// The fields of a record: bytes without padding, in the order of the event's fields.
#[repr(C)]
#[derive(Debug)]
pub struct Record {
    /// write(2) takes the record from the second half on, which is the event's index.
    pub(crate) head: [u32; 2],
    fields: [MaybeUninit<u8>; FIELDS_MAX],
    len: usize,
    is_too_large: bool,
}

impl Default for Record {
    fn default() -> Self {
        Self::new()
    }
}

impl Record {
    /// A record without fields.
    #[inline(always)]
    pub const fn new() -> Self {
        Self {
            head: [0; 2],
            fields: [MaybeUninit::uninit(); FIELDS_MAX],
            len: 0,
            is_too_large: false,
        }
    }

    /// Appends a number: its bytes, in the processor's order.
    #[inline(always)]
    pub fn put(&mut self, bytes: &[u8]) {
        let room = self.fields.get_mut(self.len..self.len + bytes.len());
        let Some(room) = room else {
            self.is_too_large = true;
            return;
        };
        for (to, from) in room.iter_mut().zip(bytes) {
            to.write(*from);
        }
        self.len += bytes.len();
    }

    /// Appends a text, up to its first NUL and at most 511 bytes of it.
    #[inline]
    pub fn put_text(&mut self, text: &[u8]) {
        let text = text.get(..TEXT_MAX).unwrap_or(text);
        let end = text.iter().position(|&byte| byte == 0);
        self.put(&text[..end.unwrap_or(text.len())]);
        self.put(&[0]);
    }

    /// Appends what `write` writes as a text, cut like [`put_text`](Self::put_text). Returns whether a record is left
    /// that can be recorded.
    #[cfg(feature = "tracing")]
    pub(crate) fn put_shown(&mut self, shown: fmt::Arguments<'_>) {
        let mut text = Text {
            record: self,
            room: TEXT_MAX,
        };
        // The writer ends early where the text is cut.
        let _ = fmt::write(&mut text, shown);
        self.put(&[0]);
    }

    /// The fields, with zeros up to a multiple of 8 bytes, and the number of bytes that are fields. [`None`]: they are too
    /// large.
    #[inline(always)]
    pub(crate) fn padded(&mut self) -> Option<(&[MaybeUninit<u8>], usize)> {
        if self.is_too_large {
            return None;
        }
        let end = self.len.next_multiple_of(8);
        for byte in self.fields.get_mut(self.len..end)? {
            byte.write(0);
        }
        Some((self.fields.get(..end)?, self.len))
    }
}

/// The end of a record, to which a text is written.
#[cfg(feature = "tracing")]
struct Text<'a> {
    record: &'a mut Record,
    room: usize,
}

#[cfg(feature = "tracing")]
impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let bytes = text.as_bytes();
        let end = bytes.iter().position(|&byte| byte == 0);
        let end = end.unwrap_or(bytes.len()).min(self.room);
        self.record.put(&bytes[..end]);
        self.room -= end;
        if end < bytes.len() {
            return Err(fmt::Error);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields as bytes.
    fn bytes(record: &mut Record) -> Option<Vec<u8>> {
        let (fields, len) = record.padded()?;
        assert_eq!(fields.len() % 8, 0);
        assert!(fields.len() - len < 8);
        // Through the pattern that write(2) sees.
        Some(crate::emit::initialised(fields)[..len].to_vec())
    }

    #[test]
    fn fields_follow_one_another() {
        let mut record = Record::new();
        record.put(&7_u32.to_ne_bytes());
        record.put_text(b"a\0b");
        record.put_text(b"");
        record.put(&[9]);
        let mut expected = 7_u32.to_ne_bytes().to_vec();
        expected.extend(*b"a\0\0\x09");
        assert_eq!(bytes(&mut record), Some(expected));
    }

    #[test]
    fn long_texts_are_cut_and_large_records_refused() {
        let mut record = Record::new();
        record.put_text(&[b'x'; 600]);
        assert_eq!(bytes(&mut record).map(|bytes| bytes.len()), Some(512));
        record.put(&[1; 496]);
        assert_eq!(bytes(&mut record).map(|bytes| bytes.len()), Some(1008));
        record.put(&[1]);
        assert_eq!(bytes(&mut record), None);
    }

    #[cfg(feature = "tracing")]
    #[test]
    fn shown_texts_are_cut_like_others() {
        let mut record = Record::new();
        record.put_shown(format_args!("{}-{}", 1, "two"));
        record.put_shown(format_args!("{}{}", "a\0b", "c"));
        record.put_shown(format_args!("{:0600}", 1));
        let bytes = bytes(&mut record).unwrap();
        assert_eq!(bytes[..8], *b"1-two\0a\0");
        assert_eq!(bytes[8..], [[b'0'; 511].as_slice(), &[0]].concat());
    }
}
