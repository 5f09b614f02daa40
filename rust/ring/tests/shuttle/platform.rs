// SPDX-License-Identifier: GPL-2.0

//! Two CPUs on which each store is visible at once.

use super::nested;
use super::ring::platform::{Local, Platform, Shared};
use super::slots::IndexedSlots;
use shuttle::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Barrier policy; it has no effect here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    Delivery,
}

pub struct Cpus;

impl Cpus {
    pub fn new(_policy: Policy) -> Self {
        Self
    }

    pub fn first_try(&self) {}
}

impl Platform for Cpus {
    type Local = LocalWord;
    type Shared = SharedWord;
    type Slots = IndexedSlots<Self>;

    fn publish(&self) {}

    fn promote(&self) {}
}

/// A word that only the writer's CPU writes. For the other CPU its operations are a load and a
/// store.
pub struct LocalWord(AtomicU64);

impl LocalWord {
    fn change(&self, change: impl FnOnce(u64) -> u64) -> u64 {
        nested::operation();
        let new = change(self.0.load(SeqCst));
        self.0.store(new, SeqCst);
        new
    }
}

impl Local for LocalWord {
    fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    fn load(&self) -> u64 {
        nested::operation();
        self.0.load(SeqCst)
    }

    fn store(&self, value: u64) {
        nested::operation();
        self.0.store(value, SeqCst);
    }

    fn compare_exchange(&self, old: u64, new: u64) -> bool {
        nested::operation();
        let same = self.0.load(SeqCst) == old;
        if same {
            self.0.store(new, SeqCst);
        }
        same
    }

    fn subtract(&self, value: u64) -> bool {
        self.change(|old| {
            old.checked_sub(value)
                .expect("more is committed than was reserved")
        }) == 0
    }

    fn add(&self, value: u64) {
        self.change(|old| old.wrapping_add(value));
    }

    fn increment(&self) {
        self.add(1);
    }
}

/// A word that both CPUs write.
pub struct SharedWord(AtomicU64);

impl Shared for SharedWord {
    fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    fn load(&self) -> u64 {
        nested::operation();
        self.0.load(SeqCst)
    }

    fn load_acquire(&self) -> u64 {
        self.load()
    }

    fn store(&self, value: u64) {
        nested::operation();
        self.0.store(value, SeqCst);
    }

    fn compare_exchange(&self, old: u64, new: u64) -> bool {
        nested::operation();
        self.0.compare_exchange(old, new, SeqCst, SeqCst).is_ok()
    }
}
