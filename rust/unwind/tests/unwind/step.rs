// SPDX-License-Identifier: GPL-2.0

//! Steps by each kind of rule.

use super::made::{caller, sp, Known, Stack, PROCESSORS};
use rtrace_unwind::end::StackEnd;
use rtrace_unwind::processor::Processor::{self, Arm64, X86_64};
use rtrace_unwind::rule::{CallerRule, Cfa, FpRule, RaRule, Rule};
use rtrace_unwind::step::{step, step_by_frame_pointer, UnwindFrame};

/// A frame whose stack pointer is 0x1000 and whose frame pointer is 0x1100.
const FRAME: UnwindFrame = UnwindFrame {
    ip: 0x40_0000,
    sp: 0x1000,
    fp: 0x1100,
    kept: 0x1200,
    is_exact: false,
};
const EXACT: UnwindFrame = UnwindFrame {
    is_exact: true,
    ..FRAME
};

/// A frame that a step from `FRAME` leads to.
const fn above(ip: u64, sp: u64, fp: u64) -> UnwindFrame {
    UnwindFrame {
        ip,
        sp,
        fp,
        kept: FRAME.kept,
        is_exact: false,
    }
}

fn outer(rule: Rule, frame: &UnwindFrame, mut stack: Stack) -> Result<UnwindFrame, StackEnd> {
    step::<Known>(X86_64, &rule, frame, None, &mut stack)
}

fn innermost(
    processor: Processor,
    rule: Rule,
    registers: &[(u8, u64)],
    mut stack: Stack,
) -> Result<UnwindFrame, StackEnd> {
    let known = Known(registers.iter().copied().collect());
    step(processor, &rule, &EXACT, Some(&known), &mut stack)
}

#[test]
fn looks_up_the_call() {
    assert_eq!(FRAME.lookup(), 0x3f_ffff);
    assert_eq!(EXACT.lookup(), 0x40_0000);
    let nowhere = UnwindFrame { ip: 0, ..FRAME };
    assert_eq!(nowhere.lookup(), u64::MAX);
}

#[test]
fn from_the_stack_pointer() {
    let stack = Stack::from([(0x1018, 0x41)]);
    assert_eq!(
        outer(sp(0x20), &FRAME, stack),
        Ok(above(0x41, 0x1020, 0x1100))
    );
    assert_eq!(
        outer(sp(0x20), &FRAME, Stack::default()),
        Err(StackEnd::Unreadable)
    );
}

#[test]
fn from_the_frame_pointer() {
    let stack = Stack::from([(0x1108, 0x41)]);
    let rule = caller(Cfa::Fp(0x10));
    assert_eq!(outer(rule, &FRAME, stack), Ok(above(0x41, 0x1110, 0x1100)));
}

#[test]
fn with_a_saved_frame_pointer() {
    let rule = |fp| {
        Rule::Caller(CallerRule {
            cfa: Cfa::Sp(0x20),
            fp,
            ra: RaRule::AtCfa(-8),
            kept: 0,
        })
    };
    let stack = Stack::from([(0x1018, 0x41), (0x1010, 0x1300), (0x10f0, 0x1400)]);
    let fp = |fp, stack: Stack| outer(rule(fp), &FRAME, stack).map(|frame| frame.fp);
    assert_eq!(fp(FpRule::Unchanged, stack.clone()), Ok(0x1100));
    assert_eq!(fp(FpRule::AtCfa(-16), stack.clone()), Ok(0x1300));
    assert_eq!(fp(FpRule::AtFp(-16), stack.clone()), Ok(0x1400));
    assert_eq!(fp(FpRule::Lost, stack.clone()), Ok(0));
    assert_eq!(
        fp(FpRule::AtCfa(-24), stack.clone()),
        Err(StackEnd::Unreadable)
    );
    assert_eq!(fp(FpRule::AtFp(0), stack), Err(StackEnd::Unreadable));
}

#[test]
fn from_a_word() {
    let stack = Stack::from([(0x10f8, 0x1180), (0x1008, 0x1170), (0x1178, 0x41)]);
    let rule = caller(Cfa::FpDeref(-8));
    assert_eq!(
        outer(rule, &FRAME, stack.clone()),
        Ok(above(0x41, 0x1180, 0x1100))
    );
    let rule = caller(Cfa::SpDeref { offset: 8, add: 16 });
    assert_eq!(
        outer(rule, &FRAME, stack.clone()),
        Ok(above(0x41, 0x1180, 0x1100))
    );
    let rule = caller(Cfa::SpDeref { offset: 0, add: 16 });
    assert_eq!(
        outer(rule, &FRAME, stack.clone()),
        Err(StackEnd::Unreadable)
    );
    let rule = caller(Cfa::FpDeref(0));
    assert_eq!(outer(rule, &FRAME, stack), Err(StackEnd::Unreadable));
}

#[test]
fn in_a_procedure_linkage_table() {
    for (low, cfa) in [(0, 0x1008), (10, 0x1008), (11, 0x1010), (15, 0x1010)] {
        let frame = UnwindFrame {
            ip: 0x40_0030 + low,
            ..EXACT
        };
        let stack = Stack::from([(0x1000, 0x41), (0x1008, 0x41)]);
        let next = outer(caller(Cfa::Plt(11)), &frame, stack).unwrap();
        assert_eq!((next.ip, next.sp), (0x41, cfa), "{low}");
    }
}

#[test]
fn from_another_register() {
    let stack = Stack::from([(0x1208, 0x41), (0x1308, 0x42)]);
    let from = |number| caller(Cfa::Register { number, offset: 16 });
    let inner = |number| {
        innermost(
            X86_64,
            from(number),
            &[(0, 0x1300), (3, 0x1300)],
            stack.clone(),
        )
    };
    assert_eq!(inner(0), Ok(above(0x42, 0x1310, 0x1100)));
    assert_eq!(inner(3), Ok(above(0x42, 0x1310, 0x1100)));
    // Not known, also in the innermost frame.
    assert_eq!(inner(1), Err(StackEnd::UnsupportedRule));
    // In an outer frame only rbx is known.
    assert_eq!(
        outer(from(3), &FRAME, stack.clone()),
        Ok(above(0x41, 0x1210, 0x1100))
    );
    assert_eq!(
        outer(from(0), &FRAME, stack.clone()),
        Err(StackEnd::UnsupportedRule)
    );
    let arm = |number| step::<Known>(Arm64, &from(number), &EXACT, None, &mut stack.clone());
    assert_eq!(arm(3), Err(StackEnd::UnsupportedRule));
    assert_eq!(arm(30), Err(StackEnd::UnsupportedRule));
}

#[test]
fn keeps_a_register() {
    let rule = Rule::Caller(CallerRule {
        cfa: Cfa::Sp(0x20),
        fp: FpRule::Unchanged,
        ra: RaRule::AtCfa(-8),
        kept: -24,
    });
    let stack = Stack::from([(0x1018, 0x41), (0x1008, 0x1500)]);
    let next = outer(rule, &FRAME, stack).unwrap();
    assert_eq!(next.kept, 0x1500);
    let stack = Stack::from([(0x1018, 0x41)]);
    assert_eq!(outer(rule, &FRAME, stack), Err(StackEnd::Unreadable));
}

#[test]
fn with_the_return_address_in_a_register() {
    let rule = |distance, number| {
        Rule::Caller(CallerRule {
            cfa: Cfa::Sp(distance),
            fp: FpRule::Unchanged,
            ra: RaRule::Register(number),
            kept: 0,
        })
    };
    let none = Stack::default;
    // A leaf function of arm64, and vfork() of x86-64, whose stacks are empty.
    assert_eq!(
        innermost(Arm64, rule(0, 30), &[(30, 0x41)], none()),
        Ok(above(0x41, 0x1000, 0x1100))
    );
    assert_eq!(
        innermost(X86_64, rule(0, 5), &[(5, 0x41)], none()),
        Ok(above(0x41, 0x1000, 0x1100))
    );
    assert_eq!(
        innermost(X86_64, rule(8, 5), &[(5, 0x41)], none()),
        Ok(above(0x41, 0x1008, 0x1100))
    );
    // Never below.
    assert_eq!(
        innermost(Arm64, rule(-8, 30), &[(30, 0x41)], none()),
        Err(StackEnd::UnsupportedRule)
    );
    assert_eq!(
        innermost(Arm64, rule(0, 30), &[], none()),
        Err(StackEnd::UnsupportedRule)
    );
    // In other frames the register has another value, except in a function that a signal has interrupted.
    for processor in PROCESSORS {
        let at = |frame: &UnwindFrame, distance, number| {
            step::<Known>(processor, &rule(distance, number), frame, None, &mut none())
        };
        let kept = processor.kept();
        assert_eq!(at(&FRAME, 0, kept), Err(StackEnd::UnsupportedRule));
        assert_eq!(at(&FRAME, 16, kept), Err(StackEnd::UnsupportedRule));
        assert_eq!(at(&EXACT, 16, 5), Err(StackEnd::UnsupportedRule));
        assert_eq!(at(&EXACT, 0, kept), Ok(above(0x1200, 0x1000, 0x1100)));
    }
    // The innermost function has not changed the register in which its caller, setjmp() of arm64, has its return address.
    let known = Known([(13, 0x41), (30, 0x42)].into_iter().collect());
    let caller = |rule: Rule| step(Arm64, &rule, &FRAME, Some(&known), &mut none());
    assert_eq!(caller(rule(0, 13)), Ok(above(0x41, 0x1000, 0x1100)));
    assert_eq!(caller(rule(16, 13)), Ok(above(0x41, 0x1010, 0x1100)));
    assert_eq!(caller(rule(-16, 13)), Err(StackEnd::UnsupportedRule));
    assert_eq!(caller(rule(0, 12)), Err(StackEnd::UnsupportedRule));
    // The call has changed the link register. The base of a frame is that of the caller itself.
    assert_eq!(caller(rule(16, 30)), Err(StackEnd::UnsupportedRule));
    let saved = Rule::Caller(CallerRule {
        cfa: Cfa::Sp(0),
        fp: FpRule::Unchanged,
        ra: RaRule::AtCfa(-8),
        kept: 0,
    });
    assert_eq!(caller(saved), Err(StackEnd::UnsupportedRule));
    let base = |processor, number| {
        let rule = Rule::Caller(CallerRule {
            cfa: Cfa::Register { number, offset: 8 },
            fp: FpRule::Unchanged,
            ra: RaRule::AtCfa(-8),
            kept: 0,
        });
        let known = Known([(3, 0x5000), (13, 0x5000)].into_iter().collect());
        let mut stack = Stack::from([(0x1200, 0x41)]);
        step(processor, &rule, &FRAME, Some(&known), &mut stack)
    };
    assert_eq!(base(X86_64, 3), Ok(above(0x41, 0x1208, 0x1100)));
    assert_eq!(base(Arm64, 13), Err(StackEnd::UnsupportedRule));
}

#[test]
fn over_a_signal() {
    let registers = |base: u64, offsets: [u64; 4]| {
        let values = [0x41, 0x500, 0x600, 0x700];
        Stack(
            offsets
                .map(|offset| base + offset)
                .into_iter()
                .zip(values)
                .collect(),
        )
    };
    let expected = UnwindFrame {
        ip: 0x41,
        sp: 0x500,
        fp: 0x600,
        kept: 0x700,
        is_exact: true,
    };
    for (processor, offsets) in [
        (X86_64, [168, 160, 120, 128]),
        (Arm64, [568, 560, 544, 552]),
    ] {
        let stack = registers(0x1000, offsets);
        let next = step::<Known>(processor, &Rule::Signal, &FRAME, None, &mut stack.clone());
        assert_eq!(next, Ok(expected));
        for offset in offsets {
            let mut stack = stack.clone();
            stack.0.remove(&(0x1000 + offset));
            let next = step::<Known>(processor, &Rule::Signal, &FRAME, None, &mut stack);
            assert_eq!(next, Err(StackEnd::Unreadable));
        }
    }
}

#[test]
fn ends() {
    assert_eq!(
        outer(Rule::End, &FRAME, Stack::default()),
        Err(StackEnd::Whole)
    );
    assert_eq!(
        outer(Rule::Other, &FRAME, Stack::default()),
        Err(StackEnd::UnsupportedRule)
    );
    // The caller's frame must be above.
    for distance in [0, -8, -0x1000] {
        let stack = Stack::from([(0xff8, 0x41), (0xff0, 0x41)]);
        assert_eq!(
            outer(sp(distance), &FRAME, stack),
            Err(StackEnd::UnsupportedRule)
        );
    }
    let exact = outer(sp(0), &EXACT, Stack::from([(0xff8, 0x41)]));
    assert_eq!(exact, Err(StackEnd::UnsupportedRule));
    // On arm64 the register may have been saved and restored.
    let arm = |frame: &UnwindFrame| {
        let mut stack = Stack::from([(0xff8, 0x41)]);
        step::<Known>(Arm64, &sp(0), frame, None, &mut stack)
    };
    assert_eq!(arm(&EXACT), Ok(above(0x41, 0x1000, 0x1100)));
    assert_eq!(arm(&FRAME), Err(StackEnd::UnsupportedRule));
    let high = UnwindFrame {
        sp: u64::MAX - 8,
        ..FRAME
    };
    assert_eq!(
        outer(sp(16), &high, Stack::default()),
        Err(StackEnd::UnsupportedRule)
    );
}

#[test]
fn by_frame_pointer() {
    let stack = Stack::from([(0x1100, 0x1140), (0x1108, 0x41)]);
    let expected = Ok(above(0x41, 0x1110, 0x1140));
    let step_86 = |frame: &UnwindFrame, stack: &Stack| {
        step_by_frame_pointer(X86_64, frame, &mut stack.clone())
    };
    assert_eq!(step_86(&FRAME, &stack), expected);
    assert_eq!(outer(Rule::None, &FRAME, stack.clone()), expected);
    let with = |sp, fp, stack: Stack| {
        let frame = UnwindFrame { sp, fp, ..FRAME };
        step_86(&frame, &stack).map(|frame| frame.sp)
    };
    assert_eq!(with(0x1100, 0x1100, stack.clone()), Ok(0x1110));
    // Below the stack pointer, not aligned, not readable.
    assert_eq!(with(0x1108, 0x1100, stack.clone()), Err(StackEnd::NoRules));
    assert_eq!(with(0x1000, 0x1104, stack.clone()), Err(StackEnd::NoRules));
    assert_eq!(with(0x1000, 0x1110, stack.clone()), Err(StackEnd::NoRules));
    let odd = Stack::from([(0x1104, 0x1140), (0x110c, 0x41)]);
    assert_eq!(with(0x1000, 0x1104, odd), Err(StackEnd::NoRules));
    let half = Stack::from([(0x1108, 0x41)]);
    assert_eq!(with(0x1000, 0x1100, half), Err(StackEnd::NoRules));
    let last = Stack::from([(0x1100, 0x1140), (0x1108, 0)]);
    assert_eq!(with(0x1000, 0x1100, last), Err(StackEnd::NoRules));
    let top = Stack::from([(u64::MAX - 7, 0x41), (u64::MAX - 15, 0x41), (0, 0x41)]);
    assert_eq!(with(0, u64::MAX - 7, top.clone()), Err(StackEnd::NoRules));
    assert_eq!(with(0, u64::MAX - 15, top), Err(StackEnd::NoRules));
}

/// The first words of a frame of arm64 are the caller's frame pointer and the return address. The caller's frame begins where
/// its frame pointer is.
#[test]
fn by_frame_pointer_of_arm64() {
    let next = |stack: Stack| step_by_frame_pointer(Arm64, &FRAME, &mut stack.clone());
    let larger = Stack::from([(0x1100, 0x1140), (0x1108, 0x41)]);
    assert_eq!(next(larger), Ok(above(0x41, 0x1140, 0x1140)));
    // The caller has no frame, or one that is not above.
    for outer in [0, 0x1100, 0x1108] {
        let stack = Stack::from([(0x1100, outer), (0x1108, 0x41)]);
        assert_eq!(next(stack), Ok(above(0x41, 0x1110, outer)));
    }
    // Then the caller's rule has its return address.
    let rule = Rule::Caller(CallerRule {
        cfa: Cfa::Sp(0x30),
        fp: FpRule::AtCfa(-0x30),
        ra: RaRule::AtCfa(-0x28),
        kept: 0,
    });
    let mut stack = Stack::from([
        (0x1100, 0x1140),
        (0x1108, 0x41),
        (0x1140, 0x1180),
        (0x1148, 0x42),
    ]);
    let caller = step::<Known>(Arm64, &Rule::None, &FRAME, None, &mut stack).unwrap();
    let next = step::<Known>(Arm64, &rule, &caller, None, &mut stack);
    assert_eq!(next, Ok(above(0x42, 0x1170, 0x1180)));
}

/// A walk through functions of each kind, to the end of the stack.
#[test]
fn walks() {
    let stack = &mut Stack::from([
        // A leaf function, 8 bytes on the stack.
        (0x1008, 0x100),
        // A function with a frame pointer.
        (0x1040, 0x1080),
        (0x1048, 0x200),
    ]);
    let rules = [
        sp(16),
        Rule::Caller(CallerRule {
            cfa: Cfa::Fp(16),
            fp: FpRule::AtCfa(-16),
            ra: RaRule::AtCfa(-8),
            kept: 0,
        }),
        Rule::End,
    ];
    let mut frame = UnwindFrame {
        fp: 0x1040,
        ..EXACT
    };
    let mut seen = Vec::new();
    let end = rules.iter().find_map(|rule| {
        seen.push((frame.ip, frame.sp));
        match step::<Known>(X86_64, rule, &frame, None, stack) {
            Ok(next) => {
                frame = next;
                None
            }
            Err(end) => Some(end),
        }
    });
    assert_eq!(
        seen,
        [(0x40_0000, 0x1000), (0x100, 0x1010), (0x200, 0x1050)]
    );
    assert_eq!((end, frame.fp), (Some(StackEnd::Whole), 0x1080));
}
