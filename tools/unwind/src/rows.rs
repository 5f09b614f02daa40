// SPDX-License-Identifier: GPL-2.0

//! The rows of a table: functions merged, addresses as offsets in the file.

use crate::elf::ElfCode;
use crate::frames::Function;
use rtrace_unwind::processor::Processor;
use rtrace_unwind::rule::{CallerRule, Cfa, Rule};

/// Maximum size of a gap between functions that is padding, which never runs. The rule before it continues.
const MAX_PADDING: u64 = 32;

/// Offsets in increasing order, each with the rule from there on. Neighbours have different rules.
///
/// The functions are in order. If they overlap, the first one counts.
pub fn merge(code: &ElfCode<'_>, functions: &[Function]) -> Vec<(u64, Rule)> {
    let mut segments = code.segments.clone();
    segments.sort_by_key(|segment| segment.offset);
    let mut rows = Rows {
        keeps: functions
            .iter()
            .any(|function| needs_kept(code.processor, function)),
        all: Vec::new(),
    };
    for segment in &segments {
        let (begin, limit) = (segment.address, segment.end());
        let offset = |address: u64| address - begin + segment.offset;
        let first = functions.partition_point(|function| function.begin < begin);
        // The end of the function before.
        let mut last = None;
        for function in functions.get(first..).unwrap_or_default() {
            if function.begin >= limit {
                break;
            }
            if last.is_some_and(|last| function.begin < last) {
                continue;
            }
            let end = function.end.min(limit);
            if let Some(last) = last.filter(|last| function.begin - last > MAX_PADDING) {
                rows.add(offset(last), Rule::None);
            }
            for (at, rule) in function.rows.iter().filter(|(at, _)| *at < end) {
                rows.add(offset(*at), *rule);
            }
            last = Some(end);
        }
        if let Some(last) = last {
            rows.add(offset(last), Rule::None);
        }
    }
    rows.all
}

/// Whether a rule of the function has the kept register as the base of the CFA.
fn needs_kept(processor: Processor, function: &Function) -> bool {
    function.rows.iter().any(|(_, rule)| {
        matches!(
            rule,
            Rule::Caller(CallerRule {
                cfa: Cfa::Register { number, .. },
                ..
            }) if *number == processor.kept()
        )
    })
}

struct Rows {
    /// Whether the file needs the slots of the kept register.
    keeps: bool,
    all: Vec<(u64, Rule)>,
}

impl Rows {
    fn add(&mut self, at: u64, mut rule: Rule) {
        if let (Rule::Caller(rule), false) = (&mut rule, self.keeps) {
            rule.kept = 0;
        }
        // A later rule of the same address replaces the earlier one.
        if self.all.last().is_some_and(|(last, _)| *last == at) {
            self.all.pop();
        }
        let last = self.all.last().map_or(Rule::None, |(_, rule)| *rule);
        if last != rule {
            self.all.push((at, rule));
        }
    }
}
