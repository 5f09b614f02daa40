// SPDX-License-Identifier: GPL-2.0

//! Two CPUs, with the weakest ordering of std's atomics that the ring's contract allows.

use super::ring::platform::{Local, Platform, Shared};
use super::slots::IndexedSlots;
use std::sync::atomic::{fence, AtomicU64, Ordering};

/// Selects the CPU that executes the barriers W1 and R1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The writer, when it delivers.
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

    fn publish(&self) {
        fence(Ordering::Release);
    }

    fn promote(&self) {
        fence(Ordering::Acquire);
    }
}

/// A word that only the writer's CPU writes. For the other CPU its operations are a load and a
/// store.
pub struct LocalWord(AtomicU64);

impl LocalWord {
    fn change(&self, change: impl FnOnce(u64) -> u64) -> u64 {
        let new = change(self.0.load(Ordering::Relaxed));
        self.0.store(new, Ordering::Relaxed);
        new
    }
}

impl Local for LocalWord {
    fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    fn load(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn store(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    fn compare_exchange(&self, old: u64, new: u64) -> bool {
        let same = self.0.load(Ordering::Relaxed) == old;
        if same {
            self.0.store(new, Ordering::Relaxed);
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
        self.0.load(Ordering::Relaxed)
    }

    fn load_acquire(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    fn store(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    fn compare_exchange(&self, old: u64, new: u64) -> bool {
        self.0
            .compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }
}
