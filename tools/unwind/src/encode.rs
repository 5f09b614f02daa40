// SPDX-License-Identifier: GPL-2.0

//! Rows as the bytes of a table (`rust/unwind/head.rs`).

use crate::Error;
use rtrace_unwind::head::{Head, BLOCKS_OF_AREA, BLOCK_SIZE, MAX_RULES, RARE};
use rtrace_unwind::processor::Processor;
use rtrace_unwind::rule::Rule;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Bytes of code in an area.
const AREA: u64 = BLOCKS_OF_AREA as u64 * BLOCK_SIZE;

/// Encodes rows. Their offsets increase, and the first rule is not [`Rule::None`].
pub fn encode(processor: Processor, rows: &[(u64, Rule)]) -> Result<Vec<u8>, Error> {
    let rules = by_use(rows);
    let numbers: HashMap<Rule, u16> = rules.iter().copied().zip(0..).collect();
    let size = |number: usize| u32::try_from(number).map_err(|_| Error::Size);
    let count = size(rules.len())?;
    if count > MAX_RULES {
        return Err(Error::Rules);
    }
    let begin = rows
        .first()
        .map_or(0, |(at, _)| at / BLOCK_SIZE * BLOCK_SIZE);
    let blocks = rows
        .last()
        .map_or(0, |(at, _)| (at - begin) / BLOCK_SIZE + 1);
    let blocks = u32::try_from(blocks).map_err(|_| Error::Size)?;

    let rare: Vec<(u32, u16)> = (0..)
        .zip(rows)
        .map(|(row, (_, rule))| (row, numbers[rule]))
        .filter(|(_, number)| *number >= RARE.into())
        .collect();
    let mut areas = Vec::new();
    let mut index: Vec<u16> = Vec::new();
    let mut first = 0;
    for area in 0..u64::from(blocks.div_ceil(BLOCKS_OF_AREA)) {
        areas.push((first, size(index.len())?));
        let start = begin + area * AREA;
        let rest = &rows[first as usize..];
        let end = rest.partition_point(|(at, _)| *at < start + AREA);
        let inside = &rest[..end];
        if !inside.is_empty() {
            index.extend((0..u64::from(BLOCKS_OF_AREA)).map(|block| {
                // At most 255 blocks of 256 rows are before a block.
                inside.partition_point(|(at, _)| *at < start + block * BLOCK_SIZE) as u16
            }));
        }
        first += size(end)?;
    }
    areas.push((first, size(index.len())?));

    let mut head = Head {
        processor,
        begin,
        blocks,
        rows: size(rows.len())?,
        rules: count,
        rare: size(rare.len())?,
        indexed: size(index.len())? / BLOCKS_OF_AREA,
        size: 0,
    };
    head.size = u32::try_from(head.needed_size()).map_err(|_| Error::Size)?;
    let mut bytes = Vec::with_capacity(head.size as usize);
    bytes.extend(head.to_bytes());
    bytes.extend(rules.iter().flat_map(Rule::encode));
    bytes.extend(
        areas
            .iter()
            .flat_map(|(row, entry)| [*row, *entry])
            .flat_map(u32::to_le_bytes),
    );
    bytes.extend(rare.iter().flat_map(|(row, _)| row.to_le_bytes()));
    bytes.extend(index.iter().flat_map(|entry| entry.to_le_bytes()));
    bytes.extend(rare.iter().flat_map(|(_, rule)| rule.to_le_bytes()));
    bytes.extend(rows.iter().map(|(at, _)| *at as u8));
    bytes.extend(
        rows.iter()
            .map(|(_, rule)| u8::try_from(numbers[rule]).unwrap_or(RARE)),
    );
    Ok(bytes)
}

/// The different rules, the most used first.
fn by_use(rows: &[(u64, Rule)]) -> Vec<Rule> {
    let mut uses: HashMap<Rule, usize> = HashMap::new();
    for (_, rule) in rows {
        *uses.entry(*rule).or_default() += 1;
    }
    let mut rules: Vec<_> = uses.into_iter().collect();
    rules.sort_by_key(|(rule, uses)| (Reverse(*uses), *rule));
    rules.into_iter().map(|(rule, _)| rule).collect()
}
