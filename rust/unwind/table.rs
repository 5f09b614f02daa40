// SPDX-License-Identifier: GPL-2.0

//! A table: the rules of the code of one file, by address.
//!
//! An address is an offset in the file. [`head`](super::head) describes the bytes.

use super::head::{Head, Places, BLOCKS_OF_AREA, BLOCK_SIZE, HEAD_SIZE, MAX_RULES, RARE};
use super::processor::Processor;
use super::rule::{Rule, RULE_SIZE};
use core::fmt;

/// Reason for refusing a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongTable {
    /// The bytes do not begin as a table does.
    Magic,
    /// The table has another version.
    Version,
    /// The table is for a processor that does not exist.
    Processor,
    /// Bytes of the header that have no meaning are not 0.
    Padding,
    /// The number of bytes is not that of the entries.
    Size,
    /// The first block is not aligned, or the last one is beyond the largest address.
    Begin,
    /// More rules than a table may have.
    TooManyRules,
    /// Bytes that are no rule.
    Rule,
    /// The areas' first rows are not in order, or not all rows are in an area.
    Areas,
    /// An area's place in the index is wrong.
    IndexPlace,
    /// The index of an area is not in order, or refers to rows of another area.
    Index,
    /// The addresses of a block are not in order.
    Addresses,
    /// A rule that does not exist.
    RuleNumber,
    /// The list of rare rules is not in order, or is not that of the rows with a rare rule.
    Rare,
}

impl fmt::Display for WrongTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Magic => "this is no unwind table",
            Self::Version => "the unwind table has another version",
            Self::Processor => "the unwind table is for an unknown processor",
            Self::Padding => "reserved bytes of the unwind table are not 0",
            Self::Size => "the unwind table has a wrong size",
            Self::Begin => "the blocks of the unwind table are at a wrong place",
            Self::TooManyRules => "the unwind table has too many rules",
            Self::Rule => "the unwind table has an unknown rule",
            Self::Areas => "the areas of the unwind table are not in order",
            Self::IndexPlace => "an area of the unwind table has a wrong place in the index",
            Self::Index => "the index of the unwind table is not in order",
            Self::Addresses => "the addresses of the unwind table are not in order",
            Self::RuleNumber => "a row of the unwind table has a rule that does not exist",
            Self::Rare => "the list of rare rules of the unwind table is wrong",
        })
    }
}

impl core::error::Error for WrongTable {}

/// A table, in bytes that the caller owns.
#[derive(Clone, Copy, Debug)]
pub struct UnwindTable<'a> {
    bytes: &'a [u8],
    head: Head,
    places: Places,
}

impl<'a> UnwindTable<'a> {
    /// Checks all bytes of a table, in a time that depends on their number only.
    pub fn check(bytes: &'a [u8]) -> Result<Self, WrongTable> {
        let table = Self::of_head(bytes)?;
        let head = bytes.first_chunk().ok_or(WrongTable::Size)?;
        if table.head.to_bytes() != *head {
            return Err(WrongTable::Padding);
        }
        if table.places.end != bytes.len() {
            return Err(WrongTable::Size);
        }
        table.check_rules()?;
        table.check_areas()?;
        table.check_numbers()?;
        Ok(table)
    }

    /// The table in bytes that [`check`](Self::check) has accepted before. Reads the header only.
    ///
    /// [`None`]: these are other bytes. If other bytes have a valid header, look-ups in the table give some rule.
    #[inline(always)]
    pub fn of_checked(bytes: &'a [u8]) -> Option<Self> {
        Self::of_head(bytes).ok()
    }

    #[inline(always)]
    fn of_head(bytes: &'a [u8]) -> Result<Self, WrongTable> {
        let head = Head::read(bytes)?;
        let places = head.places();
        Ok(Self {
            bytes,
            head,
            places,
        })
    }

    /// The bytes of an array of numbers at this offset, from its entry `at` of `SIZE` bytes.
    #[inline(always)]
    fn entry<const SIZE: usize>(&self, place: usize, at: u32) -> Option<[u8; SIZE]> {
        let from = place.wrapping_add((at as usize).wrapping_mul(SIZE));
        let bytes = self.bytes.get(from..)?;
        bytes.first_chunk().copied()
    }

    /// The processor whose code the table describes.
    #[inline]
    pub fn processor(&self) -> Processor {
        self.head.processor
    }

    /// The header.
    #[inline]
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The rule of an address. [`Rule::None`]: the table does not describe the address.
    #[inline(always)]
    pub fn rule(&self, address: u64) -> Rule {
        self.find(address).unwrap_or(Rule::None)
    }

    #[inline(always)]
    fn find(&self, address: u64) -> Option<Rule> {
        let inside = address.checked_sub(self.head.begin)?;
        let block = u32::try_from(inside / BLOCK_SIZE).ok()?;
        if block >= self.head.blocks {
            return None;
        }
        let row = self.row(block, inside as u8)?;
        let number = match self.entry(self.places.numbers, row)? {
            [RARE] => self.rare_rule(row)?,
            [number] => u16::from(number),
        };
        self.rule_of(number)
    }

    /// The last row at or before an address, which is this byte of a block.
    #[inline(always)]
    fn row(&self, block: u32, low: u8) -> Option<u32> {
        let (first, end) = self.rows_of(block)?;
        let lows = self.lows(first, end)?;
        let (mut from, mut to) = (0, lows.len());
        // At most 9 steps, because a block has at most 256 rows. Unchecked bytes: at most 17 steps.
        while from < to {
            let middle = from.wrapping_add(to.wrapping_sub(from) / 2);
            if *lows.get(middle)? <= low {
                from = middle.wrapping_add(1);
            } else {
                to = middle;
            }
        }
        // A row of an earlier block may be the last one before the address.
        first.checked_add(from as u32)?.checked_sub(1)
    }

    /// The first row of a block, and the first row after it.
    #[inline(always)]
    fn rows_of(&self, block: u32) -> Option<(u32, u32)> {
        let (area, inside) = (block / BLOCKS_OF_AREA, block % BLOCKS_OF_AREA);
        let (first, place) = self.area(area)?;
        let (end, next) = self.area(area.wrapping_add(1))?;
        if place == next {
            // The area has no row.
            return Some((first, first));
        }
        let entry = |inside: u32| {
            let bytes = self.entry(self.places.index, place.wrapping_add(inside))?;
            Some(first.wrapping_add(u16::from_le_bytes(bytes).into()))
        };
        let from = entry(inside)?;
        let to = match inside.wrapping_add(1) {
            BLOCKS_OF_AREA => end,
            inside => entry(inside)?,
        };
        Some((from, to))
    }

    /// The first row of an area, and its first entry in the index.
    #[inline(always)]
    fn area(&self, area: u32) -> Option<(u32, u32)> {
        let word = u64::from_le_bytes(self.entry(self.places.areas, area)?);
        Some((word as u32, word.wrapping_shr(32) as u32))
    }

    /// The number of a row's rule, which is rare.
    #[cold]
    fn rare_rule(&self, row: u32) -> Option<u16> {
        let (mut from, mut to) = (0, self.head.rare);
        while from < to {
            let middle = from.wrapping_add(to.wrapping_sub(from) / 2);
            let found = self.rare_row(middle)?;
            if found == row {
                return self.rare_rule_at(middle);
            }
            if found < row {
                from = middle.wrapping_add(1);
            } else {
                to = middle;
            }
        }
        None
    }

    /// The row of an entry in the list of rare rules.
    fn rare_row(&self, at: u32) -> Option<u32> {
        let bytes = self.entry(self.places.rare_rows, at)?;
        Some(u32::from_le_bytes(bytes))
    }

    /// The rule of an entry in the list of rare rules.
    fn rare_rule_at(&self, at: u32) -> Option<u16> {
        let bytes = self.entry(self.places.rare_rules, at)?;
        Some(u16::from_le_bytes(bytes))
    }

    /// The lowest bytes of the addresses of these rows.
    #[inline(always)]
    fn lows(&self, first: u32, end: u32) -> Option<&'a [u8]> {
        let at = |row: u32| self.places.lows.wrapping_add(row as usize);
        self.bytes.get(at(first)..at(end))
    }

    #[inline(always)]
    fn rule_of(&self, number: u16) -> Option<Rule> {
        let bytes: [u8; RULE_SIZE] = self.entry(HEAD_SIZE, number.into())?;
        Some(Rule::decode_any(&bytes))
    }

    fn check_rules(&self) -> Result<(), WrongTable> {
        if self.head.rules > MAX_RULES {
            return Err(WrongTable::TooManyRules);
        }
        let rules = self.bytes.get(HEAD_SIZE..self.places.areas);
        let mut rules = rules.ok_or(WrongTable::Size)?;
        while let Some((bytes, rest)) = rules.split_first_chunk() {
            Rule::decode(bytes).ok_or(WrongTable::Rule)?;
            rules = rest;
        }
        Ok(())
    }

    fn check_areas(&self) -> Result<(), WrongTable> {
        let length = u64::from(self.head.blocks).wrapping_mul(BLOCK_SIZE);
        let is_valid =
            self.head.begin % BLOCK_SIZE == 0 && self.head.begin.checked_add(length).is_some();
        if !is_valid {
            return Err(WrongTable::Begin);
        }
        let areas = self.head.areas();
        let entries = self.head.indexed.checked_mul(BLOCKS_OF_AREA);
        let mut expected = (0, 0);
        for area in 0..areas {
            let (first, place) = self.area(area).ok_or(WrongTable::Areas)?;
            let (end, next) = self.area(area.wrapping_add(1)).ok_or(WrongTable::Areas)?;
            if first != expected.0 || end < first || end > self.head.rows {
                return Err(WrongTable::Areas);
            }
            // Areas without a row have no index.
            let size = if end > first { BLOCKS_OF_AREA } else { 0 };
            if place != expected.1 || Some(next) != place.checked_add(size) {
                return Err(WrongTable::IndexPlace);
            }
            if size > 0 {
                let blocks = area.wrapping_mul(BLOCKS_OF_AREA);
                self.check_area(blocks, first, end)?;
            }
            expected = (end, next);
        }
        let last = self.area(areas).ok_or(WrongTable::Areas)?;
        if last.0 != self.head.rows || last.0 != expected.0 {
            return Err(WrongTable::Areas);
        }
        if Some(last.1) != entries || last.1 != expected.1 {
            return Err(WrongTable::IndexPlace);
        }
        Ok(())
    }

    /// Checks the index and the addresses of an area with rows.
    fn check_area(&self, first_block: u32, first: u32, end: u32) -> Result<(), WrongTable> {
        let mut expected = first;
        for inside in 0..BLOCKS_OF_AREA {
            let block = first_block.wrapping_add(inside);
            let (from, to) = self.rows_of(block).ok_or(WrongTable::Index)?;
            let is_valid = from == expected
                && from <= to
                && to <= end
                // The last area may have fewer blocks; the others have no row.
                && (block < self.head.blocks || from == to);
            if !is_valid {
                return Err(WrongTable::Index);
            }
            let mut lows = self.lows(from, to).ok_or(WrongTable::Index)?;
            while let [low, rest @ ..] = lows {
                if rest.first().is_some_and(|next| next <= low) {
                    return Err(WrongTable::Addresses);
                }
                lows = rest;
            }
            expected = to;
        }
        Ok(())
    }

    fn check_numbers(&self) -> Result<(), WrongTable> {
        let mut rare = 0_u32;
        let numbers = self.bytes.get(self.places.numbers..self.places.end);
        let numbers = numbers.ok_or(WrongTable::Size)?;
        for (row, number) in (0_u32..).zip(numbers) {
            if *number != RARE {
                if u32::from(*number) >= self.head.rules {
                    return Err(WrongTable::RuleNumber);
                }
                continue;
            }
            // The rows are in order, so the list is.
            if rare >= self.head.rare || self.rare_row(rare) != Some(row) {
                return Err(WrongTable::Rare);
            }
            let rule = self.rare_rule_at(rare).ok_or(WrongTable::Rare)?;
            if u32::from(rule) >= self.head.rules {
                return Err(WrongTable::RuleNumber);
            }
            rare = rare.wrapping_add(1);
        }
        if rare != self.head.rare {
            return Err(WrongTable::Rare);
        }
        Ok(())
    }
}
