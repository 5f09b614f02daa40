// SPDX-License-Identifier: GPL-2.0

//! Sums of the ends of user stacks: how many are whole, and why the others are not.

use crate::text::percent;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use symbols::End;

/// Number of user stacks by their end.
#[derive(Debug, Default)]
pub struct Ends(BTreeMap<End, u64>);

/// How the stacks of programs ended. Each stack is in one of the counts.
#[derive(Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct UserStacks {
    /// Number of all stacks.
    pub total: u64,
    /// Number of stacks that reach the first function of their thread by unwind tables.
    pub whole: u64,
    /// Number of stacks that reach it, but in which frame pointers led to an address.
    pub guessed: u64,
    /// Stacks that lack callers, by reason, the most frequent first.
    pub cut: Vec<Cut>,
}

/// Stacks that lack callers for one reason.
#[derive(Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Cut {
    /// The reason, as `no table yet`.
    pub reason: &'static str,
    /// Number of stacks.
    pub stacks: u64,
    /// Number of those stacks in which frame pointers led to an address.
    pub guessed: u64,
}

impl Ends {
    /// Adds the end of a stack, if there is one.
    pub fn add(&mut self, end: Option<End>) {
        if let Some(end) = end {
            *self.0.entry(end).or_default() += 1;
        }
    }

    /// The sums. [`None`]: no stack has an end.
    pub fn counted(&self) -> Option<UserStacks> {
        let mut counted = UserStacks {
            total: self.0.values().sum(),
            whole: 0,
            guessed: 0,
            cut: Vec::new(),
        };
        for (end, stacks) in &self.0 {
            match (end.is_whole(), end.is_guessed) {
                (true, false) => counted.whole += stacks,
                (true, true) => counted.guessed += stacks,
                (false, is_guessed) => counted.add_cut(end.reason(), *stacks, is_guessed),
            }
        }
        counted
            .cut
            .sort_by_key(|cut| (Reverse(cut.stacks), cut.reason));
        (counted.total > 0).then_some(counted)
    }
}

impl UserStacks {
    fn add_cut(&mut self, reason: &'static str, stacks: u64, is_guessed: bool) {
        let reason = reason.strip_prefix("cut: ").unwrap_or(reason);
        let guessed = if is_guessed { stacks } else { 0 };
        match self.cut.iter_mut().find(|cut| cut.reason == reason) {
            Some(cut) => {
                cut.stacks += stacks;
                cut.guessed += guessed;
            }
            None => self.cut.push(Cut {
                reason,
                stacks,
                guessed,
            }),
        }
    }
}

impl Display for UserStacks {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let share = |stacks| percent(stacks, self.total);
        let (whole, total) = (share(self.whole), self.total);
        write!(f, "{whole} of {total} stacks of programs are whole")?;
        for Cut { reason, stacks, .. } in &self.cut {
            write!(f, "; {} cut: {reason}", share(*stacks))?;
        }
        if self.guessed > 0 {
            write!(f, "; {} guessed by frame pointers", share(self.guessed))?;
        }
        f.write_str(".")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stack_is_in_one_sum() {
        let mut ends = Ends::default();
        assert_eq!(ends.counted(), None);
        ends.add(None);
        assert_eq!(ends.counted(), None);
        // Number in the trace, and how often.
        for (raw, count) in [(0, 985), (16, 2), (3, 5), (19, 6), (4, 1), (99, 1)] {
            for _ in 0..count {
                ends.add(Some(End::of(raw)));
            }
        }
        let counted = ends.counted().unwrap();
        assert_eq!(
            counted.to_string(),
            "98.5% of 1000 stacks of programs are whole; 1.1% cut: no table yet; 0.1% cut: code without rules; \
             0.1% cut: unknown reason; 0.2% guessed by frame pointers."
        );
        assert_eq!((counted.whole, counted.guessed), (985, 2));
        assert_eq!((counted.cut[0].stacks, counted.cut[0].guessed), (11, 6));
    }

    #[test]
    fn a_reason_that_does_not_occur_is_not_named() {
        let mut ends = Ends::default();
        ends.add(Some(End::of(0)));
        let counted = ends.counted().unwrap();
        assert_eq!(
            counted.to_string(),
            "100.0% of 1 stacks of programs are whole."
        );
    }
}
