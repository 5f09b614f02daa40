// SPDX-License-Identifier: GPL-2.0

//! Begins that wait for their ends, in a table that all CPUs share.
//!
//! A begin notes a key and a time, and the end of the same key takes the time. A key is in one of a few
//! adjacent slots, which its hash gives. All changes of a slot start with a compare-and-exchange of its
//! state. From then on the caller owns the slot, until the caller stores the next state. So an end takes the
//! time of a begin with its key, and each begin has at most one end.
//!
//! A begin without an end stays until its slot is needed: if no slot is free, the next begin replaces the
//! oldest one.

use super::hash::hash;
use super::word::SharedMapWord;
use core::marker::PhantomData;

/// Number of words of a key.
pub const PAIR_WORDS: usize = 2;

/// Number of slots in which a key may be.
const WINDOW: usize = 4;

/// Words of a slot without those of the caller: state, key, time.
const SLOT_WORDS: usize = 1 + PAIR_WORDS + 1;

/// State of a slot without a begin.
const FREE: u64 = 0;
/// State of a slot that a context changes.
const CHANGING: u64 = 2;
/// Bit that the state of a slot with a begin has. The other bits are those of the key's hash.
const READY: u64 = 1;

/// The result of noting a begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeginResult {
    /// It is noted.
    New,
    /// It replaces a begin of the same key, which thus has no end.
    Repeated,
    /// It replaces the oldest begin of its slots, of another key. The end of that key finds no begin.
    Evicted,
    /// It is not noted: other contexts change all of its slots.
    Busy,
}

/// The result of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndResult {
    /// The time of the latest begin of the key. [`None`]: no begin is noted.
    pub since: Option<u64>,
    /// Number of earlier begins of the key, which thus have no end.
    pub repeated: u64,
}

/// The begins, in the words `M`, which are 0 at first.
#[derive(Debug)]
pub struct Pairs<W, M> {
    words: M,
    slot_bits: u32,
    /// Number of words of the caller in a slot.
    kept: usize,
    word: PhantomData<W>,
}

/// A slot.
struct Slot<'a, W> {
    state: &'a W,
    key: &'a [W],
    since: &'a W,
    /// Words that the caller keeps with the time.
    kept: &'a [W],
}

impl<W: SharedMapWord> Slot<'_, W> {
    /// Makes the caller the owner of the slot, if the slot has a begin of this key. Returns whether it has.
    #[inline(always)]
    fn take(&self, ready: u64, key: &[u64; PAIR_WORDS]) -> bool {
        if self.state.load_acquire() != ready || !self.has(key) {
            return false;
        }
        if !self.state.compare_exchange(ready, CHANGING) {
            return false;
        }
        // Another context may have stored another key with the same hash before the exchange.
        let is_same = self.has(key);
        if !is_same {
            self.state.store_release(ready);
        }
        is_same
    }

    #[inline(always)]
    fn has(&self, key: &[u64; PAIR_WORDS]) -> bool {
        let mut both = self.key.iter().zip(key);
        both.all(|(word, value)| word.load() == *value)
    }

    /// Notes a begin in a slot that the caller owns.
    #[inline(always)]
    fn note(&self, ready: u64, key: &[u64; PAIR_WORDS], now: u64) {
        for (word, value) in self.key.iter().zip(key) {
            word.store(*value);
        }
        self.since.store(now);
        self.state.store_release(ready);
    }
}

impl<W: SharedMapWord, M: AsRef<[W]>> Pairs<W, M> {
    /// Number of words for this many slots, rounded up to a power of two, with `kept` words of the caller in each. There
    /// are at least as many slots as one key can be in.
    pub fn words(slots: usize, kept: usize) -> usize {
        Self::slots(slots).saturating_mul(SLOT_WORDS.saturating_add(kept))
    }

    fn slots(slots: usize) -> usize {
        slots.clamp(WINDOW, 1 << 30).next_power_of_two()
    }

    /// Makes a table without begins, in as many words as [`words`](Self::words) returns for the same numbers. The words
    /// are 0.
    pub fn new(words: M, slots: usize, kept: usize) -> Self {
        Self {
            words,
            slot_bits: Self::slots(slots).trailing_zeros(),
            kept,
            word: PhantomData,
        }
    }

    /// Notes the begin of a key. Any context, NMI included, of any CPU.
    #[inline(always)]
    pub fn begin(&self, key: &[u64; PAIR_WORDS], now: u64) -> BeginResult {
        self.begin_with(key, now, |_| {})
    }

    /// As [`begin`](Self::begin). `keep` writes the words of the caller, which the end can read.
    #[inline(always)]
    pub fn begin_with(
        &self,
        key: &[u64; PAIR_WORDS],
        now: u64,
        keep: impl FnOnce(&[W]),
    ) -> BeginResult {
        let (first, ready) = self.place(key);
        let window = || (0..WINDOW).filter_map(|step| self.slot(first.wrapping_add(step)));
        if let Some(slot) = window().find(|slot| slot.take(ready, key)) {
            keep(slot.kept);
            slot.since.store(now);
            slot.state.store_release(ready);
            return BeginResult::Repeated;
        }
        let is_free = |slot: &Slot<'_, W>| {
            slot.state.load() == FREE && slot.state.compare_exchange(FREE, CHANGING)
        };
        if let Some(slot) = window().find(is_free) {
            keep(slot.kept);
            slot.note(ready, key, now);
            return BeginResult::New;
        }
        let oldest = window().min_by_key(|slot| slot.since.load());
        let Some(slot) = oldest else {
            return BeginResult::Busy;
        };
        let state = slot.state.load();
        if state & READY == 0 || !slot.state.compare_exchange(state, CHANGING) {
            return BeginResult::Busy;
        }
        keep(slot.kept);
        slot.note(ready, key, now);
        BeginResult::Evicted
    }

    /// Ends the latest begin of a key. Any context, NMI included, of any CPU.
    #[inline(always)]
    pub fn end(&self, key: &[u64; PAIR_WORDS]) -> EndResult {
        self.end_with(key, |_| {})
    }

    /// As [`end`](Self::end). `read` gets the words of the caller; of several begins, those of the latest one last.
    #[inline(always)]
    pub fn end_with(&self, key: &[u64; PAIR_WORDS], mut read: impl FnMut(&[W])) -> EndResult {
        let (first, ready) = self.place(key);
        let mut since = None;
        let mut taken = 0_u64;
        // Two contexts that begin the same key at the same time may use two slots.
        for step in 0..WINDOW {
            let Some(slot) = self.slot(first.wrapping_add(step)) else {
                continue;
            };
            if slot.take(ready, key) {
                if since <= Some(slot.since.load()) {
                    read(slot.kept);
                }
                since = since.max(Some(slot.since.load()));
                slot.state.store_release(FREE);
                taken = taken.wrapping_add(1);
            }
        }
        EndResult {
            since,
            repeated: taken.saturating_sub(1),
        }
    }

    /// The first slot for a key, and the state of a slot that has it.
    #[inline(always)]
    fn place(&self, key: &[u64; PAIR_WORDS]) -> (usize, u64) {
        let hash = hash(key);
        let first = hash.wrapping_shr(u64::BITS.wrapping_sub(self.slot_bits)) as usize;
        (first, hash | READY)
    }

    #[inline(always)]
    fn slot(&self, index: usize) -> Option<Slot<'_, W>> {
        let mask = 1_usize.wrapping_shl(self.slot_bits).wrapping_sub(1);
        let size = SLOT_WORDS.wrapping_add(self.kept);
        let at = (index & mask).wrapping_mul(size);
        let words = self.words.as_ref().get(at..)?.get(..size)?;
        let (own, kept) = words.split_at_checked(SLOT_WORDS)?;
        let (state, rest) = own.split_first()?;
        let (since, key) = rest.split_last()?;
        Some(Slot {
            state,
            key,
            since,
            kept,
        })
    }
}
