// SPDX-License-Identifier: GPL-2.0

//! A record in a ring: two words, then the fields of the event, padded with bytes of any value to a multiple of 8.
//!
//! | word | bits | content |
//! | --- | --- | --- |
//! | 0 | 0-63 | time: the program's reading of the time stamp counter |
//! | 1 | 0-9 | length of the record in words, these two included |
//! | 1 | 10-25 | index of the event in the open file |
//! | 1 | 26-47 | number of the thread in the open file; 0: none |
//! | 1 | 48-63 | CPU |

/// Size of the two words in bytes.
pub const HEADER: usize = 16;

/// Maximum size of a record in bytes.
pub const LONGEST_RECORD: usize = 1024;

/// Largest number of a thread.
pub const MAX_THREAD: u32 = (1 << 22) - 1;

/// A record, as far as its bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The time that the program claims.
    pub time: u64,
    /// Index of the event.
    pub event: u32,
    /// Number of the thread that the program claims.
    pub thread: u32,
    /// The CPU that the program claims.
    pub cpu: u32,
    /// The fields, and less than 8 bytes of padding.
    pub padded: &'a [u8],
}

/// Why the first bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRecord {
    /// They may be the beginning of one.
    Cut,
    /// No record begins like that.
    Garbage,
}

impl<'a> Record<'a> {
    /// The record at the beginning of `bytes`, and its length.
    #[inline(always)]
    pub fn first(bytes: &'a [u8]) -> Result<(Self, usize), NoRecord> {
        let (time, rest) = bytes.split_first_chunk::<8>().ok_or(NoRecord::Cut)?;
        let (tag, _) = rest.split_first_chunk::<8>().ok_or(NoRecord::Cut)?;
        let tag = u64::from_le_bytes(*tag);
        let len = (tag & 0x3ff) as usize * 8;
        if !(HEADER..=LONGEST_RECORD).contains(&len) {
            return Err(NoRecord::Garbage);
        }
        let padded = bytes.get(HEADER..len).ok_or(NoRecord::Cut)?;
        let record = Self {
            time: u64::from_le_bytes(*time),
            event: ((tag >> 10) & 0xffff) as u32,
            thread: ((tag >> 26) & 0x3f_ffff) as u32,
            cpu: (tag >> 48) as u32,
            padded,
        };
        Ok((record, len))
    }
}
