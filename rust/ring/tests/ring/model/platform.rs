// SPDX-License-Identifier: GPL-2.0

//! The deterministic platform: plain words, of any width, with a point before each access.

use super::super::ring::platform::{Local, Platform, Shared};
use super::super::slots::IndexedSlots;
use super::point::{depth, point};
use std::cell::Cell;

/// A platform whose positions and counters have `BITS` bits.
pub struct Narrow<const BITS: u32>;

impl<const BITS: u32> Platform for Narrow<BITS> {
    const BITS: u32 = BITS;
    type Local = LocalWord<BITS>;
    type Shared = SharedWord;
    type Slots = IndexedSlots<Self>;

    fn publish(&self) {
        point();
    }

    fn promote(&self) {
        point();
    }
}

/// A word that only the writer's CPU writes. It has no more than `BITS` bits, like a word of a real
/// machine.
pub struct LocalWord<const BITS: u32>(Cell<u64>);

impl<const BITS: u32> LocalWord<BITS> {
    const WORD: u64 = u64::MAX >> (64 - BITS);
}

impl<const BITS: u32> Local for LocalWord<BITS> {
    fn new(value: u64) -> Self {
        assert_eq!(value & !Self::WORD, 0, "a local word begins out of range");
        Self(Cell::new(value))
    }

    fn load(&self) -> u64 {
        point();
        self.0.get()
    }

    fn store(&self, value: u64) {
        point();
        self.0.set(value & Self::WORD);
    }

    fn compare_exchange(&self, old: u64, new: u64) -> bool {
        point();
        assert_eq!(new & !Self::WORD, 0, "a position is out of range");
        let same = self.0.get() == old;
        if same {
            self.0.set(new);
            WCNT.set(new);
        }
        same
    }

    fn subtract(&self, value: u64) -> bool {
        point();
        assert!(value <= self.0.get(), "more is committed than was reserved");
        self.0.set(self.0.get() - value);
        self.0.get() == 0
    }

    fn add(&self, value: u64) {
        point();
        self.0.set(self.0.get().wrapping_add(value) & Self::WORD);
    }

    fn increment(&self) {
        self.add(1);
    }
}

thread_local! {
    /// Value that the last exchange of a local word wrote. The only such word is `wcnt`.
    static WCNT: Cell<u64> = const { Cell::new(0) };
    /// Depth of the context observed by [`first_exchange`], and the result of its first exchange.
    static WATCHED: Cell<Option<(u32, Option<bool>)>> = const { Cell::new(None) };
}

/// Returns the `wcnt` of this thread's ring, as of its last change.
pub fn wcnt() -> u64 {
    WCNT.get()
}

/// Makes a ring begin at `origin`.
pub fn begin_at(origin: u64) {
    WCNT.set(origin);
}

/// Runs `work`. Returns whether its first exchange of a shared word succeeded. Nested contexts do
/// not count.
pub fn first_exchange(work: impl FnOnce()) -> bool {
    WATCHED.set(Some((depth(), None)));
    work();
    let watched = WATCHED.take();
    watched.and_then(|(_, first)| first).unwrap_or(false)
}

fn watch(exchanged: bool) {
    if let Some((watched, None)) = WATCHED.get() {
        if watched == depth() {
            WATCHED.set(Some((watched, Some(exchanged))));
        }
    }
}

/// A word that both CPUs write. A reference always has 64 bits, so this word is not cut.
pub struct SharedWord(Cell<u64>);

impl Shared for SharedWord {
    fn new(value: u64) -> Self {
        Self(Cell::new(value))
    }

    fn load(&self) -> u64 {
        point();
        self.0.get()
    }

    fn load_acquire(&self) -> u64 {
        self.load()
    }

    fn store(&self, value: u64) {
        point();
        self.0.set(value);
    }

    fn compare_exchange(&self, old: u64, new: u64) -> bool {
        point();
        let same = self.0.get() == old;
        if same {
            self.0.set(new);
        }
        watch(same);
        same
    }
}
