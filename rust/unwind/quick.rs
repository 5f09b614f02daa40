// SPDX-License-Identifier: GPL-2.0

//! Rules of one word, for the fast loop of a walk.

use super::processor::Processor;
use super::rule::{Cfa, FpRule, RaRule, Rule};

/// A rule in one word. Most rules have this form.
///
/// The fast loop is C code and reads the word itself, so the bits must not change:
///
/// | bits | meaning |
/// | --- | --- |
/// | 0 | the base is the frame pointer instead of the stack pointer |
/// | 1 | the slot has the caller's frame pointer; otherwise the frame pointer is unchanged |
/// | 2 | the function has no caller; all other bits are 0 |
/// | 3 to 15 | 0 |
/// | 16 to 31 | offset of the slot from the CFA, signed and below 0; 0 without bit 1 |
/// | 32 to 63 | offset of the CFA from its base, signed |
///
/// The return address of x86-64 is in the word at CFA - 8, that of arm64 in the word after the slot, which each rule of
/// arm64 has. The CFA is the caller's stack pointer, and must be above the stack pointer. The kept register is unchanged,
/// and the caller's frame is not exact. A rule is never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct QuickRule(u64);

/// Base of the CFA is the frame pointer.
pub const QUICK_FROM_FP: u64 = 1 << 0;
/// The caller's frame pointer is in the slot.
pub const QUICK_FP_SAVED: u64 = 1 << 1;
/// The function has no caller.
pub const QUICK_END: u64 = 1 << 2;

impl QuickRule {
    /// The word of a rule of this processor. [`None`]: the rule is not so simple.
    #[inline(always)]
    pub fn of(processor: Processor, rule: &Rule) -> Option<Self> {
        let rule = match rule {
            Rule::End => return Some(Self(QUICK_END)),
            Rule::Caller(rule) if rule.kept == 0 => rule,
            _ => return None,
        };
        let high = |offset: i32| u64::from(offset as u32).wrapping_shl(32);
        let base = match rule.cfa {
            // A CFA at or below the stack pointer is wrong.
            Cfa::Sp(offset) if offset > 0 => high(offset),
            Cfa::Fp(offset) => high(offset) | QUICK_FROM_FP,
            _ => return None,
        };
        let (saved, slot) = match rule.fp {
            FpRule::Unchanged => (0, 0),
            FpRule::AtCfa(slot) if slot <= -8 => (
                u64::from(slot as u16).wrapping_shl(16) | QUICK_FP_SAVED,
                slot,
            ),
            _ => return None,
        };
        let is_simple = match (processor, rule.ra) {
            (Processor::X86_64, RaRule::AtCfa(at)) => at == -8,
            (Processor::Arm64, RaRule::AtCfa(at)) => slot < -8 && at == slot.wrapping_add(8),
            _ => false,
        };
        is_simple.then_some(Self(base | saved))
    }

    /// The word, which is not 0.
    #[inline(always)]
    pub const fn word(self) -> u64 {
        self.0
    }
}
