// SPDX-License-Identifier: GPL-2.0

//! The rules of the vDSO of arm64, which has no call frame information: from its instructions.
//!
//! | instruction | rule from the next one on |
//! | --- | --- |
//! | `stp x29, x30, [sp, #-N]!` | frame pointer and return address in the lowest two words of a frame of N bytes |
//! | `ldp x29, x30, [sp], #N` | return address in its register, as at the begin of a function |
//! | another one that changes the stack pointer or the link register | none |
//!
//! The rules follow all jumps. Where they differ, there is none.

use crate::elf::{ElfCode, Section};
use crate::frames::Function;
use rtrace_unwind::rule::{CallerRule, Cfa, FpRule, RaRule, Rule};
use std::collections::BTreeMap;

/// The rule of a function of arm64 that has pushed nothing.
pub const LEAF: Rule = Rule::Caller(CallerRule {
    cfa: Cfa::Sp(0),
    fp: FpRule::Unchanged,
    ra: RaRule::Register(30),
    kept: 0,
});

/// The function that returns from a signal.
const SIGRETURN: &str = "__kernel_rt_sigreturn";
/// Its two instructions, the one before it, which is looked up for a return address, and the one after it, which the
/// program has during the system call.
const BEFORE_SIGRETURN: u64 = 4;
const SIGRETURN_SIZE: u64 = 12;

/// The functions of a vDSO, none of which is described; empty for other files.
pub fn functions(code: &ElfCode<'_>) -> Vec<Function> {
    let (Some(sigreturn), Ok(Some(text))) = (code.exported(SIGRETURN), code.section(".text"))
    else {
        return Vec::new();
    };
    let mut rules = BTreeMap::new();
    for begin in code.all_exported().filter(|begin| *begin != sigreturn) {
        follow(&text, begin, &mut rules);
    }
    let begin = sigreturn.saturating_sub(BEFORE_SIGRETURN);
    for address in (begin..sigreturn.saturating_add(SIGRETURN_SIZE)).step_by(4) {
        rules.entry(address).or_insert(Rule::Signal);
    }
    let function = |(begin, rule): (u64, Rule)| {
        let end = begin.checked_add(4)?;
        Some(Function {
            begin,
            end,
            rows: vec![(begin, rule)],
        })
    };
    rules.into_iter().filter_map(function).collect()
}

/// Adds the rules of the instructions of a function, and of those that it calls.
fn follow(text: &Section<'_>, begin: u64, rules: &mut BTreeMap<u64, Rule>) {
    let mut paths = vec![(begin, LEAF)];
    while let Some((address, rule)) = paths.pop() {
        let Some(instruction) = text.instruction(address) else {
            continue;
        };
        let known = rules.get(&address).copied();
        if known == Some(rule) || known == Some(Rule::None) {
            continue;
        }
        let rule = if known.is_none() { rule } else { Rule::None };
        rules.insert(address, rule);
        if let Some(target) = target(instruction, address) {
            let is_call = instruction >> 26 == CALL;
            paths.push((target, if is_call { LEAF } else { rule }));
        }
        if !never_continues(instruction) {
            paths.push((address.wrapping_add(4), after(instruction, rule)));
        }
    }
}

/// Operations in the highest bits of an instruction: `b` and `bl`.
pub const JUMP: u32 = 0b00_0101;
pub const CALL: u32 = 0b10_0101;

/// Where an instruction at an address jumps or calls, if it says so itself.
pub fn target(instruction: u32, address: u64) -> Option<u64> {
    // The distance is in `bits` bits from bit `low` on.
    let (low, bits) = match instruction >> 24 {
        0x14..=0x17 | 0x94..=0x97 => (0, 26),
        // b.cond; cbz, cbnz; tbz, tbnz.
        0x54 | 0x34 | 0x35 | 0xb4 | 0xb5 => (5, 19),
        0x36 | 0x37 | 0xb6 | 0xb7 => (5, 14),
        _ => return None,
    };
    let distance = (instruction << (32 - low - bits)) as i32 >> (32 - bits);
    Some(address.wrapping_add_signed(i64::from(distance) * 4))
}

/// Whether the next instruction is not executed after this one: `b`, `br`, `ret` and the like.
fn never_continues(instruction: u32) -> bool {
    let is_by_register = instruction >> 25 == 0b110_1011;
    // blr.
    let is_call = (instruction >> 21) & 0b111 == 0b001;
    instruction >> 26 == JUMP || (is_by_register && !is_call) || instruction >> 16 == 0
}

/// The rule after an instruction.
fn after(instruction: u32, rule: Rule) -> Rule {
    // The offset of `stp` and `ldp` is in words.
    let words = (instruction << 10) as i32 >> 25;
    let size = (words * 8).unsigned_abs() as i16;
    let frame = Rule::Caller(CallerRule {
        cfa: Cfa::Sp(size.into()),
        fp: FpRule::AtCfa(-size),
        ra: RaRule::AtCfa(8 - size),
        kept: 0,
    });
    match instruction & 0xffc0_7fff {
        0xa980_7bfd if words < 0 && rule == LEAF => frame,
        0xa8c0_7bfd if words > 0 && rule == frame => LEAF,
        _ if changes_frame(instruction) => Rule::None,
        _ => rule,
    }
}

/// Whether an instruction may change the stack pointer or the link register. It is not a call.
fn changes_frame(instruction: u32) -> bool {
    if target(instruction, 0).is_some() {
        return false;
    }
    let register = |low: u32| (instruction >> low) & 31;
    let is = |mask: u32, bits: u32| instruction & mask == bits;
    let is_pair = is(0x3a00_0000, 0x2800_0000);
    // add, sub; and, orr, eor: with an immediate number or an extended register.
    let has_sp = is(0x3f00_0000, 0x1100_0000)
        || is(0x3fe0_0000, 0x0b20_0000)
        || (is(0x1f80_0000, 0x1200_0000) && !is(0x6000_0000, 0x6000_0000));
    // Loads and stores that change their base.
    let changes_base = (is_pair && is(0x0080_0000, 0x0080_0000))
        || is(0x3b20_0400, 0x3800_0400)
        || is(0xbe80_0000, 0x0c80_0000);
    (has_sp && register(0) == 31)
        || (changes_base && register(5) == 31)
        || register(0) == 30
        || (is_pair && register(10) == 30)
}
