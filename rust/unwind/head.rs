// SPDX-License-Identifier: GPL-2.0

//! The header of a table, and the layout of the bytes after it.
//!
//! All numbers are little endian. A *row* begins at an address, and its rule applies up to the next row. The code is
//! divided into blocks of 256 bytes, and these into areas of 256 blocks.
//!
//! | part | entries | bytes of an entry |
//! | --- | --- | --- |
//! | header | | 64 |
//! | rules, the most used first | `rules` | 16 ([`rule`](super::rule)) |
//! | areas | number of areas + 1 | 8: the first row, the first entry in the index |
//! | rows with a rare rule, in order | `rare` | 4: the row |
//! | index: 256 entries for each area with a row | `indexed` * 256 | 2: first row of the block, from the area's first row |
//! | rules of these rows | `rare` | 2: the rule |
//! | addresses | `rows` | 1: the lowest byte of the address |
//! | rule numbers | `rows` | 1: the rule; 255: a rare rule |
//!
//! Header:
//!
//! | byte | size | meaning |
//! | --- | --- | --- |
//! | 0 | 4 | `RTUW` |
//! | 4 | 1 | version: 1 |
//! | 5 | 1 | processor: 1 x86-64, 2 arm64 |
//! | 8 | 8 | address of the first block; a multiple of 256 |
//! | 16 | 4 | number of blocks |
//! | 20 | 4 | number of rows |
//! | 24 | 4 | number of rules, at most 65,535 |
//! | 28 | 4 | number of rows with a rare rule |
//! | 32 | 4 | number of areas in the index |
//! | 36 | 4 | size of the table in bytes |
//!
//! The other bytes of the header are 0.

use super::processor::Processor;
use super::rule::RULE_SIZE;
use super::table::WrongTable;

/// Size of the header in bytes.
pub const HEAD_SIZE: usize = 64;

/// Blocks of an area.
pub const BLOCKS_OF_AREA: u32 = 256;
/// Bytes of code in a block.
pub const BLOCK_SIZE: u64 = 256;
/// Size of an area's entry.
pub const AREA_SIZE: usize = 8;
/// Size of an area's part of the index.
const INDEX_SIZE: usize = 2 * BLOCKS_OF_AREA as usize;
/// The rule number that stands for a rare rule.
pub const RARE: u8 = 255;
/// Maximum number of rules.
pub const MAX_RULES: u32 = 65_535;

const MAGIC: [u8; 4] = *b"RTUW";
const VERSION: u8 = 1;

/// The header of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The processor.
    pub processor: Processor,
    /// Address of the first block, a multiple of [`BLOCK_SIZE`].
    pub begin: u64,
    /// Number of blocks.
    pub blocks: u32,
    /// Number of rows.
    pub rows: u32,
    /// Number of rules.
    pub rules: u32,
    /// Number of rows with a rare rule.
    pub rare: u32,
    /// Number of areas with an index.
    pub indexed: u32,
    /// Size of the table in bytes.
    pub size: u32,
}

impl Head {
    /// Reads the header at the beginning of a table's bytes. The size must be that of the bytes.
    #[inline(always)]
    pub fn read(bytes: &[u8]) -> Result<Self, WrongTable> {
        let head: &[u8; HEAD_SIZE] = bytes.first_chunk().ok_or(WrongTable::Size)?;
        let (start, rest) = head.split_first_chunk().ok_or(WrongTable::Size)?;
        let [m0, m1, m2, m3, version, processor, ..]: &[u8; 8] = start;
        let (begin, rest) = rest.split_first_chunk().ok_or(WrongTable::Size)?;
        let number = |at: usize| {
            let bytes = rest.get(at..).and_then(|bytes| bytes.first_chunk());
            bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
        };
        if [*m0, *m1, *m2, *m3] != MAGIC {
            return Err(WrongTable::Magic);
        }
        if *version != VERSION {
            return Err(WrongTable::Version);
        }
        let head = Self {
            processor: Processor::from_raw(*processor).ok_or(WrongTable::Processor)?,
            begin: u64::from_le_bytes(*begin),
            blocks: number(0),
            rows: number(4),
            rules: number(8),
            rare: number(12),
            indexed: number(16),
            size: number(20),
        };
        let is_complete = usize::try_from(head.size) == Ok(bytes.len());
        is_complete.then_some(head).ok_or(WrongTable::Size)
    }

    /// The header as bytes.
    pub fn to_bytes(self) -> [u8; HEAD_SIZE] {
        let mut bytes = [0; HEAD_SIZE];
        let numbers = [
            self.blocks,
            self.rows,
            self.rules,
            self.rare,
            self.indexed,
            self.size,
        ];
        let all = MAGIC
            .into_iter()
            .chain([VERSION, self.processor as u8, 0, 0])
            .chain(self.begin.to_le_bytes())
            .chain(numbers.into_iter().flat_map(u32::to_le_bytes));
        for (to, byte) in bytes.iter_mut().zip(all) {
            *to = byte;
        }
        bytes
    }

    /// Number of areas.
    #[inline(always)]
    pub fn areas(&self) -> u32 {
        self.blocks.div_ceil(BLOCKS_OF_AREA)
    }

    /// Places of the parts. None is beyond 2^44.
    #[inline(always)]
    pub(super) fn places(&self) -> Places {
        let after = |at: usize, entries: u32, size: usize| {
            at.wrapping_add((entries as usize).wrapping_mul(size))
        };
        let areas = after(HEAD_SIZE, self.rules, RULE_SIZE);
        let rare_rows = after(areas, self.areas().wrapping_add(1), AREA_SIZE);
        let index = after(rare_rows, self.rare, 4);
        let rare_rules = after(index, self.indexed, INDEX_SIZE);
        let lows = after(rare_rules, self.rare, 2);
        let numbers = after(lows, self.rows, 1);
        Places {
            areas,
            rare_rows,
            index,
            rare_rules,
            lows,
            numbers,
            end: after(numbers, self.rows, 1),
        }
    }

    /// Size of a table with these numbers of entries.
    pub fn needed_size(&self) -> u64 {
        self.places().end as u64
    }
}

/// Offsets of the parts in a table. The rules are after the header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub(super) areas: usize,
    pub(super) rare_rows: usize,
    pub(super) index: usize,
    pub(super) rare_rules: usize,
    pub(super) lows: usize,
    pub(super) numbers: usize,
    /// The offset after the last part.
    pub(super) end: usize,
}
