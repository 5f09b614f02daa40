// SPDX-License-Identifier: GPL-2.0

//! Implementations of the traits of ring, maps and write side for the words.

use super::chosen::{Chosen, Items};
use super::map::word::{MapWord, SharedMapWord};
use super::record::gate::Passage;
use super::record::gate::State;
use super::ring::platform::{Local, Platform, Shared};
use super::ring::slot::{Slot, Slots};
use super::word::{full_barrier, CountAndFlags, LocalWord, SharedWord};

impl Local for LocalWord {
    #[inline(always)]
    fn new(value: u64) -> Self {
        Self::new(value)
    }
    #[inline(always)]
    fn load(&self) -> u64 {
        self.load()
    }
    #[inline(always)]
    fn store(&self, value: u64) {
        self.store(value)
    }
    #[inline(always)]
    fn compare_exchange(&self, old: u64, new: u64) -> bool {
        self.compare_exchange(old, new)
    }
    #[inline(always)]
    fn subtract(&self, value: u64) -> bool {
        self.subtract(value)
    }
    #[inline(always)]
    fn add(&self, value: u64) {
        self.add(value)
    }
    #[inline(always)]
    fn increment(&self) {
        self.increment()
    }
}

impl Shared for SharedWord {
    #[inline(always)]
    fn new(value: u64) -> Self {
        Self::new(value)
    }
    #[inline(always)]
    fn load(&self) -> u64 {
        self.load()
    }
    #[inline(always)]
    fn load_acquire(&self) -> u64 {
        self.load_acquire()
    }
    #[inline(always)]
    fn store(&self, value: u64) {
        self.store(value)
    }
    #[inline(always)]
    fn compare_exchange(&self, old: u64, new: u64) -> bool {
        self.compare_exchange(old, new)
    }
}

impl MapWord for LocalWord {
    #[inline(always)]
    fn load(&self) -> u64 {
        self.load()
    }

    #[inline(always)]
    fn load_acquire(&self) -> u64 {
        self.load_acquire()
    }

    #[inline(always)]
    fn store(&self, value: u64) {
        self.store(value)
    }

    #[inline(always)]
    fn store_release(&self, value: u64) {
        self.store_release(value)
    }

    #[inline(always)]
    fn compare_exchange(&self, old: u64, new: u64) -> bool {
        self.compare_exchange(old, new)
    }

    #[inline(always)]
    fn add(&self, value: u64) {
        self.add(value)
    }
}

impl SharedMapWord for SharedWord {
    #[inline(always)]
    fn load(&self) -> u64 {
        self.load()
    }

    #[inline(always)]
    fn load_acquire(&self) -> u64 {
        self.load_acquire()
    }

    #[inline(always)]
    fn store(&self, value: u64) {
        self.store(value)
    }

    #[inline(always)]
    fn store_release(&self, value: u64) {
        self.store_release(value)
    }

    #[inline(always)]
    fn compare_exchange(&self, old: u64, new: u64) -> bool {
        self.compare_exchange(old, new)
    }
}

impl<P: Platform<Local = LocalWord>, I: Items<Slot<P>>> Slots<P> for Chosen<Slot<P>, I> {
    #[inline(always)]
    fn all(&self) -> &[Slot<P>] {
        self.all()
    }
    #[inline(always)]
    fn open(&self) -> &Slot<P> {
        self.get()
    }
    fn set_open(&self, index: u64) {
        self.choose(index as usize);
    }
}

// SAFETY: The number is 0 until `set_open`, which is a release. All functions that read it are
// acquires.
unsafe impl State for CountAndFlags {
    fn new() -> Self {
        // One context may enter before the count is negative.
        Self::new(1)
    }
    #[inline(always)]
    fn enter(&self) -> bool {
        self.take_if_one()
    }
    #[inline(always)]
    fn leave(&self) {
        self.put_back();
    }
    #[inline(always)]
    fn is_nested(&self) -> bool {
        self.count().is_negative()
    }
    #[inline(always)]
    fn is_open(&self) -> bool {
        // `Passage::Open`.
        self.is_one()
    }
    #[inline(always)]
    fn passage(&self) -> Passage {
        match self.number() {
            0 => Passage::Closed,
            1 => Passage::Open,
            2 => Passage::Fenced,
            _ => Passage::Held,
        }
    }
    fn set_open(&self, open: bool) {
        self.set_number(open.into());
    }
    fn change(&self, from: Passage, to: Passage) -> bool {
        self.change_number(from as u32, to as u32)
    }
    fn fence(&self) {
        full_barrier();
    }
    fn is_empty(&self) -> bool {
        self.count().load_acquire() == 1
    }
    #[inline(always)]
    fn set_watched(&self, watched: bool) {
        self.set_flag(watched);
    }
}
