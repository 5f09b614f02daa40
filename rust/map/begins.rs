// SPDX-License-Identifier: GPL-2.0

//! Begins of small numbers, such as thread ids: one word each, in a table that all CPUs share.
//!
//! Unlike [`Pairs`](super::pairs::Pairs), a begin is one word: its number and its time. So one
//! compare-and-exchange notes it or takes it, and no context ever finds a slot that another one changes.
//!
//! A number is in one of the few slots of its group. A begin without an end stays until its group is full.
//! Then the next begin replaces the oldest one.

use super::pairs::BeginResult;
use super::word::SharedMapWord;
use core::marker::PhantomData;

/// Number of slots in a group. A group is in one cache line if the words are aligned to it.
const GROUP: usize = 4;

/// Number of bits of a number that choose its group.
const GROUP_BITS: u32 = 13;

/// Number of further bits of a number, which its word contains.
const TAG_BITS: u32 = 10;

/// Numbers are below this one.
pub const BEGIN_LIMIT: u64 = 1 << (GROUP_BITS + TAG_BITS);

/// Number of words of a table.
pub const BEGIN_WORDS: usize = GROUP << GROUP_BITS;

/// Bits of the time in a word. The bits above it are the mark: a 1, and the tag.
const TIME_BITS: u32 = u64::BITS - TAG_BITS - 1;
const TIME: u64 = (1 << TIME_BITS) - 1;

/// A word without a begin.
const FREE: u64 = 0;

/// The result of the end of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberEnd {
    /// The time since the latest begin, up to 2^52. [`None`]: no begin is noted.
    pub passed: Option<u64>,
    /// Number of earlier begins, which thus have no end.
    pub repeated: u64,
}

/// The begins, in the words `M`, which are 0 at first.
#[derive(Debug)]
pub struct NumberBegins<W, M> {
    words: M,
    word: PhantomData<W>,
}

impl<W: SharedMapWord, M: AsRef<[W]>> NumberBegins<W, M> {
    /// Makes a table without begins, of [`BEGIN_WORDS`] words. The words are 0.
    pub fn new(words: M) -> Self {
        let word = PhantomData;
        Self { words, word }
    }

    /// Notes the begin of a number, if the group has a free slot before any slot that has the number. Returns whether
    /// it did; if not, nothing has changed. Any context, NMI included, of any CPU.
    ///
    /// A later slot may have an earlier begin of the number. The end takes both begins, and reports the earlier one as
    /// repeated.
    #[inline(always)]
    pub fn begin_at_once(&self, number: u64, now: u64) -> bool {
        let Some((group, mark)) = self.place(number) else {
            return false;
        };
        for slot in group {
            let found = slot.load();
            if found == FREE {
                return slot.compare_exchange(FREE, mark | now & TIME);
            }
            if has(found, mark) {
                return false;
            }
        }
        false
    }

    /// Notes the begin of a number. Any context, NMI included, of any CPU.
    #[inline(always)]
    pub fn begin(&self, number: u64, now: u64) -> BeginResult {
        if self.begin_at_once(number, now) {
            return BeginResult::New;
        }
        let Some((group, mark)) = self.place(number) else {
            return BeginResult::Busy;
        };
        let begin = mark | now & TIME;
        let mut free = None;
        for slot in group {
            let found = slot.load();
            if has(found, mark) && slot.compare_exchange(found, begin) {
                return BeginResult::Repeated;
            }
            if found == FREE {
                free = Some(slot);
            }
        }
        match free {
            Some(slot) if slot.compare_exchange(FREE, begin) => BeginResult::New,
            _ => Self::replace(group, begin, now),
        }
    }

    /// Notes a begin in a full group, or in one that another context changes.
    #[cold]
    #[inline(always)]
    fn replace(group: &[W], begin: u64, now: u64) -> BeginResult {
        if let Some(slot) = group.iter().find(|slot| slot.load() == FREE) {
            if slot.compare_exchange(FREE, begin) {
                return BeginResult::New;
            }
        }
        let age = |slot: &&W| now.wrapping_sub(slot.load()) & TIME;
        let Some(oldest) = group.iter().max_by_key(age) else {
            return BeginResult::Busy;
        };
        let found = oldest.load();
        match oldest.compare_exchange(found, begin) {
            true if found == FREE => BeginResult::New,
            true => BeginResult::Evicted,
            false => BeginResult::Busy,
        }
    }

    /// Ends the begin of a number, if there is exactly one. Returns the time since then; else nothing has changed. Any
    /// context, NMI included, of any CPU.
    #[inline(always)]
    pub fn end_at_once(&self, number: u64, now: u64) -> Option<u64> {
        let (group, mark) = self.place(number)?;
        let mut only = None;
        for slot in group {
            let found = slot.load();
            if has(found, mark) {
                if only.is_some() {
                    return None;
                }
                only = Some((slot, found));
            }
        }
        let (slot, found) = only?;
        let is_taken = slot.compare_exchange(found, FREE);
        is_taken.then(|| not_negative(now.wrapping_sub(found) & TIME))
    }

    /// Ends the latest begin of a number. Any context, NMI included, of any CPU.
    #[inline(always)]
    pub fn end(&self, number: u64, now: u64) -> NumberEnd {
        if let Some(passed) = self.end_at_once(number, now) {
            return NumberEnd {
                passed: Some(passed),
                repeated: 0,
            };
        }
        let (mut passed, mut taken) = (0, 0_u64);
        if let Some((group, mark)) = self.place(number) {
            // Two contexts that begin the same number at the same time may use two slots.
            for slot in group {
                let found = slot.load();
                if has(found, mark) && slot.compare_exchange(found, FREE) {
                    let since = not_negative(now.wrapping_sub(found) & TIME);
                    passed = if taken == 0 { since } else { since.min(passed) };
                    taken = taken.wrapping_add(1);
                }
            }
        }
        NumberEnd {
            passed: (taken != 0).then_some(passed),
            repeated: taken.saturating_sub(1),
        }
    }

    /// The group of a number, and the mark of its words. [`None`]: the number is too large.
    #[inline(always)]
    fn place(&self, number: u64) -> Option<(&[W; GROUP], u64)> {
        let tag = number.wrapping_shr(GROUP_BITS);
        if tag >= 1 << TAG_BITS {
            return None;
        }
        let first = (number as usize & ((1 << GROUP_BITS) - 1)).wrapping_mul(GROUP);
        let group = self.words.as_ref().get(first..first.wrapping_add(GROUP))?;
        let group = group.first_chunk()?;
        Some((group, (tag | (1 << TAG_BITS)).wrapping_shl(TIME_BITS)))
    }
}

/// The time since a begin. By the clock of another CPU, a begin may be later than now: then the time is 0.
#[inline(always)]
fn not_negative(passed: u64) -> u64 {
    match passed > TIME >> 1 {
        true => 0,
        false => passed,
    }
}

/// Whether a word has this mark.
#[inline(always)]
fn has(word: u64, mark: u64) -> bool {
    (word ^ mark).wrapping_shr(TIME_BITS) == 0
}
