// SPDX-License-Identifier: GPL-2.0

//! Tables made of rows, and a stack in memory.

use rtrace_unwind::processor::Processor;
use rtrace_unwind::rule::{CallerRule, Cfa, FpRule, RaRule, Rule};
use rtrace_unwind::step::{InnermostRegisters, StackWords};
use std::collections::{BTreeMap, HashMap};

/// A rule with this distance from the stack pointer to the CFA.
pub fn sp(distance: i32) -> Rule {
    caller(Cfa::Sp(distance))
}

/// A rule with this CFA, return address at CFA - 8.
pub fn caller(cfa: Cfa) -> Rule {
    Rule::Caller(CallerRule {
        cfa,
        fp: FpRule::Unchanged,
        ra: RaRule::AtCfa(-8),
        kept: 0,
    })
}

/// The parts of a table, which a test may change.
#[derive(Clone, Debug)]
pub struct Parts {
    pub begin: u64,
    pub blocks: u32,
    pub rules: Vec<Rule>,
    pub areas: Vec<(u32, u32)>,
    pub rare: Vec<(u32, u16)>,
    pub index: Vec<u16>,
    pub lows: Vec<u8>,
    pub numbers: Vec<u8>,
}

impl Parts {
    /// The parts for these rows, from the definition of each number.
    pub fn of(rows: &BTreeMap<u64, Rule>) -> Self {
        let first = rows.keys().next().copied().unwrap_or_default();
        let begin = first & !255;
        let block = |at: u64| ((at - begin) / 256) as u32;
        let blocks = rows.keys().last().map_or(0, |last| block(*last) + 1);
        let keys: Vec<u64> = rows.keys().copied().collect();
        let before = |limit: u32| keys.partition_point(|at| block(*at) < limit) as u32;

        let (mut rules, mut known) = (Vec::new(), HashMap::new());
        for rule in rows.values() {
            known.entry(*rule).or_insert_with(|| {
                rules.push(*rule);
                rules.len() as u16 - 1
            });
        }
        let number = |rule: &Rule| known[rule];

        let (mut areas, mut index) = (Vec::new(), Vec::new());
        for area in 0..blocks.div_ceil(256) {
            let row = before(area * 256);
            areas.push((row, index.len() as u32));
            if before(area * 256 + 256) > row {
                let entries = area * 256..area * 256 + 256;
                index.extend(entries.map(|block| (before(block) - row) as u16));
            }
        }
        areas.push((rows.len() as u32, index.len() as u32));
        Self {
            begin,
            blocks,
            areas,
            index,
            lows: rows.keys().map(|at| *at as u8).collect(),
            numbers: rows
                .values()
                .map(|rule| number(rule).min(255) as u8)
                .collect(),
            rare: (0..)
                .zip(rows.values())
                .map(|(row, rule)| (row, number(rule)))
                .filter(|(_, number)| *number >= 255)
                .collect(),
            rules,
        }
    }

    /// The bytes of the table for x86-64.
    pub fn bytes(&self) -> Vec<u8> {
        let mut all = b"RTUW\x01\x01\0\0".to_vec();
        all.extend(self.begin.to_le_bytes());
        let numbers = [
            self.blocks,
            self.lows.len() as u32,
            self.rules.len() as u32,
            self.rare.len() as u32,
            self.index.len() as u32 / 256,
            0,
        ];
        all.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        all.resize(64, 0);
        all.extend(self.rules.iter().flat_map(Rule::encode));
        for (row, entry) in &self.areas {
            all.extend(row.to_le_bytes());
            all.extend(entry.to_le_bytes());
        }
        all.extend(self.rare.iter().flat_map(|(row, _)| row.to_le_bytes()));
        all.extend(self.index.iter().flat_map(|entry| entry.to_le_bytes()));
        all.extend(self.rare.iter().flat_map(|(_, rule)| rule.to_le_bytes()));
        all.extend(&self.lows);
        all.extend(&self.numbers);
        let size = all.len() as u32;
        all[36..40].copy_from_slice(&size.to_le_bytes());
        all
    }
}

/// Rows with `rules` different rules, one each 100 bytes from `begin`.
pub fn rows(begin: u64, rules: i32) -> BTreeMap<u64, Rule> {
    (0..rules)
        .map(|number| (begin + 100 * number as u64, sp(8 * (number + 1))))
        .collect()
}

/// Words at addresses. All other addresses cannot be read.
#[derive(Clone, Debug, Default)]
pub struct Stack(pub HashMap<u64, u64>);

impl<const N: usize> From<[(u64, u64); N]> for Stack {
    fn from(words: [(u64, u64); N]) -> Self {
        Self(words.into())
    }
}

impl StackWords for Stack {
    fn word(&mut self, at: u64) -> Option<u64> {
        self.0.get(&at).copied()
    }
}

/// Some registers by DWARF's number.
#[derive(Clone, Debug)]
pub struct Known(pub HashMap<u8, u64>);

impl InnermostRegisters for Known {
    fn register(&self, number: u8) -> Option<u64> {
        self.0.get(&number).copied()
    }
}

/// Both processors.
pub const PROCESSORS: [Processor; 2] = [Processor::X86_64, Processor::Arm64];
