// SPDX-License-Identifier: GPL-2.0

//! Rules of one word, and the loop that reads them.

use super::made::{caller, sp, Known, Stack};
use super::random::any_rule;
use proptest::prelude::*;
use rtrace_unwind::end::StackEnd;
use rtrace_unwind::processor::Processor;
use rtrace_unwind::quick::{QuickRule, QUICK_END, QUICK_FP_SAVED, QUICK_FROM_FP};
use rtrace_unwind::rule::{CallerRule, Cfa, FpRule, RaRule, Rule};
use rtrace_unwind::step::{step, StackWords, UnwindFrame};

fn word(rule: Rule) -> Option<u64> {
    QuickRule::of(Processor::X86_64, &rule).map(QuickRule::word)
}

/// A rule of arm64, whose return address is in the word after the slot.
fn record(cfa: Cfa, slot: i16) -> Rule {
    Rule::Caller(CallerRule {
        cfa,
        fp: FpRule::AtCfa(slot),
        ra: RaRule::AtCfa(slot.wrapping_add(8)),
        kept: 0,
    })
}

fn with(cfa: Cfa, fp: FpRule) -> Rule {
    Rule::Caller(CallerRule {
        cfa,
        fp,
        ra: RaRule::AtCfa(-8),
        kept: 0,
    })
}

/// The C code reads these bits.
#[test]
fn have_these_bits() {
    assert_eq!([QUICK_FROM_FP, QUICK_FP_SAVED, QUICK_END], [1, 2, 4]);
    assert_eq!(word(Rule::End), Some(QUICK_END));
    assert_eq!(word(sp(8)), Some(0x0000_0008_0000_0000));
    assert_eq!(word(sp(i32::MAX)), Some(0x7fff_ffff_0000_0000));
    assert_eq!(word(caller(Cfa::Fp(16))), Some(0x0000_0010_0000_0001));
    assert_eq!(word(caller(Cfa::Fp(-1))), Some(0xffff_ffff_0000_0001));
    assert_eq!(word(caller(Cfa::Fp(0))), Some(1));
    let saved = with(Cfa::Sp(24), FpRule::AtCfa(-16));
    assert_eq!(word(saved), Some(0x0000_0018_fff0_0002));
    let saved = with(Cfa::Fp(16), FpRule::AtCfa(i16::MIN));
    assert_eq!(word(saved), Some(0x0000_0010_8000_0003));
    let on_arm64 = |rule| QuickRule::of(Processor::Arm64, &rule).map(QuickRule::word);
    assert_eq!(on_arm64(Rule::End), Some(QUICK_END));
    let saved = record(Cfa::Fp(48), -48);
    assert_eq!(on_arm64(saved), Some(0x0000_0030_ffd0_0003));
    for other in [
        sp(16),
        record(Cfa::Sp(16), -8),
        with(Cfa::Sp(32), FpRule::AtCfa(-32)),
    ] {
        assert_eq!(on_arm64(other), None, "{other:?}");
    }
}

#[test]
fn express_simple_rules_only() {
    for rule in [
        Rule::None,
        Rule::Signal,
        Rule::Other,
        sp(0),
        sp(-8),
        caller(Cfa::Plt(11)),
        caller(Cfa::FpDeref(0)),
        caller(Cfa::SpDeref { offset: 8, add: 0 }),
        caller(Cfa::Register {
            number: 7,
            offset: 8,
        }),
        with(Cfa::Sp(8), FpRule::Lost),
        with(Cfa::Sp(8), FpRule::AtFp(0)),
        with(Cfa::Sp(8), FpRule::AtCfa(0)),
        with(Cfa::Sp(8), FpRule::AtCfa(0x123)),
        Rule::Caller(CallerRule {
            cfa: Cfa::Sp(8),
            fp: FpRule::Unchanged,
            ra: RaRule::AtCfa(-16),
            kept: 0,
        }),
        Rule::Caller(CallerRule {
            cfa: Cfa::Sp(8),
            fp: FpRule::Unchanged,
            ra: RaRule::Register(16),
            kept: 0,
        }),
        Rule::Caller(CallerRule {
            cfa: Cfa::Sp(8),
            fp: FpRule::Unchanged,
            ra: RaRule::AtCfa(-8),
            kept: -8,
        }),
    ] {
        assert_eq!(word(rule), None, "{rule:?}");
    }
}

/// A step of the fast loop, as its description says.
fn quick_step(
    processor: Processor,
    word: u64,
    frame: &UnwindFrame,
    words: &mut impl StackWords,
) -> Result<UnwindFrame, StackEnd> {
    if word & QUICK_END != 0 {
        return Err(StackEnd::Whole);
    }
    let base = if word & QUICK_FROM_FP != 0 {
        frame.fp
    } else {
        frame.sp
    };
    let cfa = base.wrapping_add((word as i64 >> 32) as u64);
    if cfa <= frame.sp {
        return Err(StackEnd::UnsupportedRule);
    }
    let mut read = |at| words.word(at).ok_or(StackEnd::Unreadable);
    let slot = cfa.wrapping_add((word >> 16) as u16 as i16 as u64);
    let ip = read(match processor {
        Processor::X86_64 => cfa.wrapping_sub(8),
        Processor::Arm64 => slot.wrapping_add(8),
    })?;
    let fp = match word & QUICK_FP_SAVED {
        0 => frame.fp,
        _ => read(slot)?,
    };
    Ok(UnwindFrame {
        ip,
        sp: cfa,
        fp,
        kept: frame.kept,
        is_exact: false,
    })
}

struct Noise;

impl StackWords for Noise {
    fn word(&mut self, at: u64) -> Option<u64> {
        (at % 5 != 0).then_some(at.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }
}

proptest! {
    /// The fast loop goes where a step goes.
    #[test]
    fn lead_to_the_same_frame(
        rule in prop_oneof![
            any_rule(),
            (1..200_i32, any::<i16>()).prop_map(|(cfa, slot)| with(Cfa::Sp(8 * cfa), FpRule::AtCfa(slot))),
            (-20..200_i32, any::<i16>()).prop_map(|(cfa, slot)| with(Cfa::Fp(8 * cfa), FpRule::AtCfa(slot))),
            (1..200_i32, any::<i16>()).prop_map(|(cfa, slot)| record(Cfa::Sp(8 * cfa), slot)),
            (-20..200_i32, any::<i16>()).prop_map(|(cfa, slot)| record(Cfa::Fp(8 * cfa), slot)),
        ],
        processor in prop_oneof![Just(Processor::X86_64), Just(Processor::Arm64)],
        (ip, sp, kept, is_exact) in any::<(u64, u64, u64, bool)>(),
        above in 0..2000_u64,
    ) {
        let frame = UnwindFrame { ip, sp, fp: sp.wrapping_add(above), kept, is_exact };
        if let Some(word) = QuickRule::of(processor, &rule).map(QuickRule::word) {
            prop_assert_ne!(word, 0);
            let full = step::<Known>(processor, &rule, &frame, None, &mut Noise);
            // A frame record is not empty.
            if !full.is_ok_and(|next| next.sp == sp) {
                prop_assert_eq!(quick_step(processor, word, &frame, &mut Noise), full);
            }
        }
    }
}

#[test]
fn reads_the_slots() {
    let mut stack = Stack::from([(0x1010, 0x40), (0x1008, 0x50)]);
    let frame = UnwindFrame {
        ip: 1,
        sp: 0x1000,
        fp: 2,
        kept: 3,
        is_exact: true,
    };
    let word = word(with(Cfa::Sp(0x18), FpRule::AtCfa(-16))).unwrap();
    let next = quick_step(Processor::X86_64, word, &frame, &mut stack).unwrap();
    assert_eq!((next.ip, next.sp, next.fp), (0x40, 0x1018, 0x50));
    let word = QuickRule::of(Processor::Arm64, &record(Cfa::Sp(0x20), -24))
        .unwrap()
        .word();
    let next = quick_step(Processor::Arm64, word, &frame, &mut stack).unwrap();
    assert_eq!((next.ip, next.sp, next.fp), (0x40, 0x1020, 0x50));
}
