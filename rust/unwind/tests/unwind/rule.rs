// SPDX-License-Identifier: GPL-2.0

//! The bytes of rules.

use super::made::caller;
use rtrace_unwind::rule::{CallerRule, Cfa, FpRule, RaRule, Rule};

/// Rules and their bytes, as tables on disk and other programs have them.
#[test]
fn have_these_bytes() {
    let simple = |kind: u8| {
        let mut bytes = [0; 16];
        bytes[0] = kind;
        bytes
    };
    let full = CallerRule {
        cfa: Cfa::SpDeref {
            offset: 0x0403_0201,
            add: -2,
        },
        fp: FpRule::AtFp(-16),
        ra: RaRule::Register(30),
        kept: -24,
    };
    for (rule, bytes) in [
        (Rule::None, simple(0)),
        (Rule::End, simple(1)),
        (Rule::Signal, simple(6)),
        (Rule::Other, simple(9)),
        (
            caller(Cfa::Sp(-1)),
            [2, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0xf8, 0xff, 0, 0, 0, 0],
        ),
        (
            caller(Cfa::Fp(16)),
            [3, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0xf8, 0xff, 0, 0, 0, 0],
        ),
        (
            caller(Cfa::Register {
                number: 3,
                offset: 8,
            }),
            [4, 0, 0, 3, 8, 0, 0, 0, 0, 0, 0xf8, 0xff, 0, 0, 0, 0],
        ),
        (
            caller(Cfa::Plt(11)),
            [5, 0, 0, 11, 0, 0, 0, 0, 0, 0, 0xf8, 0xff, 0, 0, 0, 0],
        ),
        (
            caller(Cfa::FpDeref(-8)),
            [
                7, 0, 0, 0, 0xf8, 255, 255, 255, 0, 0, 0xf8, 0xff, 0, 0, 0, 0,
            ],
        ),
        (
            Rule::Caller(full),
            [
                8, 2, 1, 0, 1, 2, 3, 4, 0xf0, 0xff, 30, 0, 0xe8, 0xff, 0xfe, 0xff,
            ],
        ),
        (
            Rule::Caller(CallerRule {
                cfa: Cfa::Sp(16),
                fp: FpRule::AtCfa(-16),
                ra: RaRule::AtCfa(-8),
                kept: 0,
            }),
            [2, 1, 0, 0, 16, 0, 0, 0, 0xf0, 0xff, 0xf8, 0xff, 0, 0, 0, 0],
        ),
        (
            Rule::Caller(CallerRule {
                cfa: Cfa::Sp(16),
                fp: FpRule::Lost,
                ra: RaRule::AtCfa(-8),
                kept: 0,
            }),
            [2, 3, 0, 0, 16, 0, 0, 0, 0, 0, 0xf8, 0xff, 0, 0, 0, 0],
        ),
    ] {
        assert_eq!(rule.encode(), bytes);
        assert_eq!(Rule::decode(&bytes), Some(rule));
    }
}

/// A byte that a rule does not use must be 0, and numbers must be known.
#[test]
fn refuse_other_bytes() {
    let refused = |rule: Rule, at: usize, byte: u8| {
        let mut bytes = rule.encode();
        bytes[at] = byte;
        Rule::decode(&bytes).is_none()
    };
    for kind in 10..=255 {
        assert!(refused(Rule::None, 0, kind));
    }
    for rule in [Rule::None, Rule::End, Rule::Signal, Rule::Other] {
        for at in 1..16 {
            assert!(refused(rule, at, 1));
        }
    }
    let rule = caller(Cfa::Sp(8));
    assert!(refused(rule, 1, 4));
    assert!(refused(rule, 2, 2));
    assert!(refused(rule, 3, 1));
    // The frame pointer is unchanged.
    assert!(refused(rule, 8, 1));
    assert!(refused(rule, 9, 1));
    // This kind of CFA has no addend.
    assert!(refused(rule, 14, 1));
    // A threshold has no offset.
    assert!(refused(caller(Cfa::Plt(11)), 4, 8));
    // A register has one byte.
    let rule = Rule::Caller(CallerRule {
        cfa: Cfa::Sp(8),
        fp: FpRule::Unchanged,
        ra: RaRule::Register(30),
        kept: 0,
    });
    assert!(refused(rule, 11, 1));
}
