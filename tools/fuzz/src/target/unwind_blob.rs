// SPDX-License-Identifier: GPL-2.0

//! A table for the module to unwind by: the bytes as they are, or the bytes after a header with fitting sizes. A walk
//! by any table ends.

use rtrace_unwind::end::StackEnd;
use rtrace_unwind::head::Head;
use rtrace_unwind::processor::Processor;
use rtrace_unwind::quick::{QuickRule, QUICK_END};
use rtrace_unwind::rule::{CallerRule, RaRule, Rule};
use rtrace_unwind::step::{step, InnermostRegisters, StackWords, UnwindFrame};
use rtrace_unwind::table::UnwindTable;

/// Limit of a walk, as in the module.
const LIMIT: usize = 128;

pub fn check(data: &[u8]) {
    let Some((control, rest)) = data.split_first_chunk::<8>() else {
        return;
    };
    walk_by(rest, control);
    if let Some(table) = with_header(control, rest) {
        walk_by(&table, control);
    }
}

/// A table with these bytes after the header. The control bytes have the numbers of the entries.
fn with_header(control: &[u8; 8], body: &[u8]) -> Option<Vec<u8>> {
    let [flags, begin, blocks, more, rows, rules, rare, indexed] = *control;
    let mut head = Head {
        processor: Processor::from_raw(1 + flags % 2)?,
        begin: u64::from(begin) << 8,
        blocks: u32::from(blocks) | (u32::from(more % 8) << 8),
        rows: rows.into(),
        rules: rules.into(),
        rare: (rare % 16).into(),
        indexed: (indexed % 4).into(),
        size: 0,
    };
    head.size = u32::try_from(head.needed_size()).ok()?;
    let mut table = head.to_bytes().to_vec();
    table.extend(body.iter().take(head.size as usize - table.len()));
    table.resize(head.size as usize, 0);
    Some(table)
}

/// Words and registers made of the bytes.
struct Noise<'a>(&'a [u8]);

impl Noise<'_> {
    fn at(&self, at: u64) -> u64 {
        let place = at as usize % (self.0.len() + 1);
        let byte = self.0.get(place).copied().unwrap_or_default();
        // Addresses in the table and on the stack, and others.
        match byte % 4 {
            0 => u64::from(byte) << 6,
            1 => at.wrapping_add(u64::from(byte)),
            2 => u64::from(byte).wrapping_mul(0x0101_0101),
            _ => at.rotate_left(u32::from(byte)),
        }
    }
}

impl StackWords for Noise<'_> {
    fn word(&mut self, at: u64) -> Option<u64> {
        (at % 13 != 5).then(|| self.at(at))
    }
}

impl InnermostRegisters for Noise<'_> {
    fn register(&self, number: u8) -> Option<u64> {
        (number < 32).then(|| self.at(number.into()))
    }
}

/// Looks up addresses, and walks, by a table that may be refused.
fn walk_by(bytes: &[u8], control: &[u8; 8]) {
    let checked = UnwindTable::check(bytes);
    if let Err(wrong) = checked {
        assert!(!wrong.to_string().is_empty());
    }
    let Some(table) = UnwindTable::of_checked(bytes) else {
        assert!(checked.is_err());
        return;
    };
    let begin = table.head().begin;
    assert_eq!(table.rule(begin.wrapping_sub(1)), Rule::None);
    for offset in (0..0x1_8000_u64).step_by(251) {
        table.rule(begin.wrapping_add(offset));
    }
    let noise = Noise(bytes);
    let mut words = Noise(bytes);
    let mut frame = UnwindFrame {
        ip: begin.wrapping_add(u64::from_le_bytes(*control) % 0x1000),
        sp: 0x7000_0000,
        fp: 0x7000_0100,
        kept: 0x7000_0200,
        is_exact: true,
    };
    for number in 0..LIMIT {
        let rule = table.rule(frame.lookup());
        let innermost = (number == 0).then_some(&noise);
        let next = step(table.processor(), &rule, &frame, innermost, &mut words);
        if let Some(quick) = QuickRule::of(table.processor(), &rule) {
            assert_ne!(quick.word(), 0);
            assert_eq!(quick.word() == QUICK_END, next == Err(StackEnd::Whole));
        }
        let Ok(next) = next else { return };
        let is_empty = table.processor() == Processor::Arm64
            || matches!(
                rule,
                Rule::Caller(CallerRule {
                    ra: RaRule::Register(_),
                    ..
                })
            );
        let stays = next.sp == frame.sp && frame.is_exact && is_empty;
        assert!(next.sp > frame.sp || stays || rule == Rule::Signal);
        assert_eq!(next.is_exact, rule == Rule::Signal);
        frame = next;
    }
}
