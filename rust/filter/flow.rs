// SPDX-License-Identifier: GPL-2.0

//! Translation of `&&`, `||`, `!` and parentheses to skips.
//!
//! A step has two exits, for true and for false. The target of an exit is known only later: the
//! right side of an operator, when that begins, or the end of the program. Until then the exit is
//! kept in a set. A complete part of the expression has two sets: the exits taken if it is true,
//! and those taken if it is false. To invert the part, these sets are exchanged.

use super::input::filter::MAX_DEPTH;
use super::program::{Step, MAX_STEPS};
use core::mem::take;

/// A set of exits: a bit for each step.
#[derive(Clone, Copy, Default)]
struct Exits {
    if_true: u64,
    if_false: u64,
}

const _: () = assert!(MAX_STEPS <= u64::BITS as usize);

impl Exits {
    fn add(&mut self, other: Self) {
        self.if_true |= other.if_true;
        self.if_false |= other.if_false;
    }

    /// Sets the target of all exits to step `to`, which is after their steps.
    fn lead_to(self, to: usize, steps: &mut [Step]) {
        for (at, step) in steps.iter_mut().enumerate() {
            let is_in = |set: u64| set.wrapping_shr(at as u32) & 1 != 0;
            let skipped = to.saturating_sub(at.saturating_add(1)) as u8;
            if is_in(self.if_true) {
                step.if_true = skipped;
            }
            if is_in(self.if_false) {
                step.if_false = skipped;
            }
        }
    }
}

/// The exits of a complete part.
#[derive(Clone, Copy, Default)]
struct Part {
    is_true: Exits,
    is_false: Exits,
}

impl Part {
    fn invert_if(self, is_inverted: bool) -> Self {
        if is_inverted {
            Self {
                is_true: self.is_false,
                is_false: self.is_true,
            }
        } else {
            self
        }
    }
}

/// State of the expression inside a parenthesis, or of the outermost one.
#[derive(Clone, Copy, Default)]
struct Level {
    /// Whether a `!` comes before it.
    is_inverted: bool,
    /// Exits taken if a left side of `||` is true.
    is_true: Exits,
    /// Exits taken if a left side of `&&` is false, since the last `||`.
    is_false: Exits,
}

/// State after the elements of an expression that were read so far.
pub(super) struct Flow {
    /// The outermost level and one for each open parenthesis. The innermost one is at `depth`.
    levels: [Level; MAX_DEPTH + 1],
    depth: usize,
    /// The part that was completed last.
    part: Part,
    /// Whether the next part is inverted.
    is_inverted: bool,
}

impl Flow {
    pub(super) fn new() -> Self {
        Self {
            levels: [Level::default(); MAX_DEPTH + 1],
            depth: 0,
            part: Part::default(),
            is_inverted: false,
        }
    }

    /// Returns the innermost level. (The parser accepts neither too many `(` nor a `)` without
    /// `(`.)
    fn level(&mut self) -> &mut Level {
        let [outermost, inner @ ..] = &mut self.levels;
        match self.depth.checked_sub(1) {
            Some(at) => inner.get_mut(at).unwrap_or(outermost),
            None => outermost,
        }
    }

    /// `!`
    pub(super) fn not(&mut self) {
        self.is_inverted = !self.is_inverted;
    }

    /// `(`
    pub(super) fn open(&mut self) {
        self.depth = self.depth.wrapping_add(1);
        *self.level() = Level {
            is_inverted: take(&mut self.is_inverted),
            ..Level::default()
        };
    }

    /// A predicate that step `at` evaluates, or whose negation it evaluates.
    pub(super) fn predicate(&mut self, at: usize, is_contrary: bool) {
        let step = 1_u64.wrapping_shl(at as u32);
        let part = Part {
            is_true: Exits {
                if_true: step,
                if_false: 0,
            },
            is_false: Exits {
                if_true: 0,
                if_false: step,
            },
        };
        self.part = part.invert_if(take(&mut self.is_inverted) != is_contrary);
    }

    /// `&&`, after these steps.
    pub(super) fn and(&mut self, steps: &mut [Step]) {
        let Part { is_true, is_false } = self.part;
        is_true.lead_to(steps.len(), steps);
        self.level().is_false.add(is_false);
    }

    /// `||`, after these steps.
    pub(super) fn or(&mut self, steps: &mut [Step]) {
        let Part { is_true, is_false } = self.part;
        let level = self.level();
        level.is_true.add(is_true);
        let mut all_false = take(&mut level.is_false);
        all_false.add(is_false);
        all_false.lead_to(steps.len(), steps);
    }

    /// Completes the innermost level.
    fn complete(&mut self) {
        let Part { is_true, is_false } = self.part;
        let mut level = *self.level();
        level.is_true.add(is_true);
        level.is_false.add(is_false);
        let part = Part {
            is_true: level.is_true,
            is_false: level.is_false,
        };
        self.part = part.invert_if(level.is_inverted);
    }

    /// `)`
    pub(super) fn close(&mut self) {
        self.complete();
        self.depth = self.depth.saturating_sub(1);
    }

    /// The end of the expression, after these steps.
    pub(super) fn end(mut self, steps: &mut [Step]) {
        self.complete();
        let Part { is_true, is_false } = self.part;
        is_true.lead_to(steps.len(), steps);
        is_false.lead_to(steps.len().saturating_add(1), steps);
    }
}
