// SPDX-License-Identifier: GPL-2.0

//! Rules of one word, for the fast loop of a walk.

use super::rule::{CallerRule, Cfa, FpRule, RaRule, Rule};

/// A rule in one word. Most rules of x86-64 have this form.
///
/// The fast loop is C code and reads the word itself, so the bits must not change:
///
/// | bits | meaning |
/// | --- | --- |
/// | 0 to 31 | offset of the CFA from its base, signed |
/// | 32 to 47 | offset of the slot with the caller's frame pointer from the CFA, signed; 0 without bit 49 |
/// | 48 | the base is the frame pointer instead of the stack pointer |
/// | 49 | the slot has the caller's frame pointer; otherwise the frame pointer is unchanged |
/// | 50 | the function has no caller; all other bits are 0 |
/// | 51 to 63 | 0 |
///
/// The return address is in the word at CFA - 8. The CFA is the caller's stack pointer, and must be above the stack
/// pointer. The kept register is unchanged, and the caller's frame is not exact. A rule is never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct QuickRule(u64);

/// Base of the CFA is the frame pointer.
pub const QUICK_FROM_FP: u64 = 1 << 48;
/// The caller's frame pointer is in the slot.
pub const QUICK_FP_SAVED: u64 = 1 << 49;
/// The function has no caller.
pub const QUICK_END: u64 = 1 << 50;

impl QuickRule {
    /// The word of a rule. [`None`]: the rule is not so simple.
    #[inline(always)]
    pub fn of(rule: &Rule) -> Option<Self> {
        let (cfa, fp) = match *rule {
            Rule::End => return Some(Self(QUICK_END)),
            Rule::Caller(CallerRule {
                cfa,
                fp,
                ra: RaRule::AtCfa(-8),
                kept: 0,
            }) => (cfa, fp),
            _ => return None,
        };
        let low = |offset: i32| u64::from(offset as u32);
        let base = match cfa {
            // A CFA at or below the stack pointer is wrong.
            Cfa::Sp(offset) if offset > 0 => low(offset),
            Cfa::Fp(offset) => low(offset) | QUICK_FROM_FP,
            _ => return None,
        };
        let saved = match fp {
            FpRule::Unchanged => 0,
            FpRule::AtCfa(slot) => u64::from(slot as u16).wrapping_shl(32) | QUICK_FP_SAVED,
            _ => return None,
        };
        Some(Self(base | saved))
    }

    /// The word, which is not 0.
    #[inline(always)]
    pub const fn word(self) -> u64 {
        self.0
    }
}
