// SPDX-License-Identifier: GPL-2.0

//! Random tables, beside a model.

use super::made::{caller, sp, Known, Parts, PROCESSORS};
use proptest::prelude::*;
use rtrace_unwind::rule::{CallerRule, Cfa, FpRule, RaRule, Rule};
use rtrace_unwind::step::{step, StackWords, UnwindFrame};
use rtrace_unwind::table::UnwindTable;
use std::collections::{BTreeMap, HashMap};

/// A distance between rows: mostly short, now and then beyond an area.
fn distance() -> impl Strategy<Value = u64> {
    prop_oneof![
        20 => 1_u64..16,
        10 => 1_u64..600,
        2 => 0x100_u64..0x3_0000,
        1 => Just(0x1_0000_u64),
    ]
}

fn rows() -> impl Strategy<Value = BTreeMap<u64, Rule>> {
    let rows = prop::collection::vec((distance(), 0..600_i32), 0..900);
    (0..0x4_0000_u64, rows).prop_map(|(begin, rows)| {
        let mut at = begin;
        rows.into_iter()
            .map(|(distance, rule)| {
                at += distance;
                let rule = if rule == 0 { Rule::None } else { sp(8 * rule) };
                (at, rule)
            })
            .collect()
    })
}

/// Any rule.
pub fn any_rule() -> impl Strategy<Value = Rule> {
    let cfa = prop_oneof![
        any::<i32>().prop_map(Cfa::Sp),
        any::<i32>().prop_map(Cfa::Fp),
        (any::<u8>(), any::<i32>()).prop_map(|(number, offset)| Cfa::Register { number, offset }),
        any::<u8>().prop_map(Cfa::Plt),
        any::<i32>().prop_map(Cfa::FpDeref),
        (any::<i32>(), any::<i16>()).prop_map(|(offset, add)| Cfa::SpDeref { offset, add }),
    ];
    let fp = prop_oneof![
        Just(FpRule::Unchanged),
        any::<i16>().prop_map(FpRule::AtCfa),
        any::<i16>().prop_map(FpRule::AtFp),
        Just(FpRule::Lost),
    ];
    let ra = prop_oneof![
        Just(RaRule::AtCfa(-8)),
        any::<i16>().prop_map(RaRule::AtCfa),
        any::<u8>().prop_map(RaRule::Register),
    ];
    let caller = (cfa, fp, ra, prop_oneof![Just(0_i16), any::<i16>()]);
    prop_oneof![
        1 => Just(Rule::None),
        1 => Just(Rule::End),
        1 => Just(Rule::Signal),
        1 => Just(Rule::Other),
        20 => caller.prop_map(|(cfa, fp, ra, kept)| Rule::Caller(CallerRule { cfa, fp, ra, kept })),
    ]
}

/// Words that can all be read, except for each seventh one.
struct Noise;

impl StackWords for Noise {
    fn word(&mut self, at: u64) -> Option<u64> {
        let mixed = at.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 61 != 0).then_some(at.wrapping_add(mixed >> 50))
    }
}

proptest! {
    /// A table has the rule of the last row at or before each address.
    #[test]
    fn equals_the_model(rows in rows(), more in prop::collection::vec(any::<u64>(), 20)) {
        let bytes = Parts::of(&rows).bytes();
        let table = UnwindTable::check(&bytes).unwrap();
        let limit = (rows.keys().last().copied().unwrap_or_default() | 255).saturating_add(1);
        let near = rows.keys().flat_map(|at| [at - 1, *at, at + 1, at | 255, at + 300]);
        for at in near.chain(more.iter().map(|at| at % (limit + 1000))) {
            let model = rows.range(..=at).next_back();
            let expected = model.filter(|_| at < limit).map_or(Rule::None, |(_, rule)| *rule);
            prop_assert_eq!(table.rule(at), expected, "{:#x}", at);
        }
    }

    /// A table with wrong bytes is refused, or gives rules all the same. `of_checked` gives rules in both cases.
    #[test]
    fn survives_wrong_bytes(
        rows in rows(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        addresses in prop::collection::vec(0..0x8_0000_u64, 50),
    ) {
        let mut bytes = Parts::of(&rows).bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let checked = UnwindTable::check(&bytes).is_ok();
        let table = UnwindTable::of_checked(&bytes);
        prop_assert!(table.is_some() || !checked);
        if let Some(table) = table {
            for at in addresses {
                table.rule(at);
            }
        }
    }

    /// A rule's bytes give the rule. Other bytes give none, or are the bytes of the rule that they give.
    #[test]
    fn rules_have_one_form(rule in any_rule(), at in 0..16_usize, byte: u8) {
        let mut bytes = rule.encode();
        prop_assert_eq!(Rule::decode(&bytes), Some(rule));
        bytes[at] = byte;
        if let Some(other) = Rule::decode(&bytes) {
            prop_assert_eq!(other.encode(), bytes);
        }
    }

    /// A step never panics, and ends above the frame, except at a signal.
    #[test]
    fn steps_lead_up(
        rule in any_rule(),
        (ip, sp, fp, kept, is_exact) in any::<(u64, u64, u64, u64, bool)>(),
        is_innermost: bool,
        arm: bool,
    ) {
        let frame = UnwindFrame { ip, sp, fp, kept, is_exact };
        let registers = Known((0..40).map(|number| (number, sp.wrapping_add(u64::from(number) * 16))).collect());
        let innermost = is_innermost.then_some(&registers);
        let processor = PROCESSORS[usize::from(arm)];
        if let Ok(next) = step(processor, &rule, &frame, innermost, &mut Noise) {
            prop_assert_eq!(next.is_exact, rule == Rule::Signal);
            let register = match rule {
                Rule::Caller(CallerRule { ra: RaRule::Register(number), .. }) => Some(number),
                _ => None,
            };
            let is_kept = is_innermost && register.is_some_and(|number| number != processor.kept());
            let may_stay = (register.is_some() || arm) && is_exact || is_kept;
            let is_above = next.sp > sp || (may_stay && next.sp == sp);
            prop_assert!(is_above || rule == Rule::Signal);
        }
    }
}

#[test]
fn noise_has_words_that_cannot_be_read() {
    let read = (0..1000).filter(|at| Noise.word(*at).is_some()).count();
    assert!((700..1000).contains(&read));
    let known = Known(HashMap::new());
    let frame = UnwindFrame {
        ip: 0,
        sp: 0,
        fp: 0,
        kept: 0,
        is_exact: true,
    };
    let rule = caller(Cfa::Register {
        number: 0,
        offset: 8,
    });
    assert!(step(PROCESSORS[0], &rule, &frame, Some(&known), &mut Noise).is_err());
}
