// SPDX-License-Identifier: GPL-2.0

//! The platform of two CPUs, as weak as the ring is told that it may be.

use super::cpu;
use super::outside::{is_on, Outside};
use super::ring::platform::{Local, Platform, Shared};
use super::slots::IndexedSlots;
use loom::sync::atomic::{fence, AtomicU64, Ordering};
// Not loom's: it belongs to the search, not to what is searched.
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Who executes the barriers W1 and R1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The writer, when it delivers.
    Delivery,
    /// The writer's CPU, when the reader interrupts it.
    Interrupt,
}

/// Two CPUs.
pub struct Cpus {
    policy: Policy,
    /// Whether the reader has tried in this get.
    tried: AtomicBool,
}

impl Cpus {
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            tried: AtomicBool::new(false),
        }
    }

    /// A get begins.
    pub fn first_try(&self) {
        self.tried.store(false, Relaxed);
    }
}

impl Platform for Cpus {
    type Local = LocalWord;
    type Shared = SharedWord;
    type Slots = IndexedSlots<Self>;

    fn publish(&self) {
        if self.policy == Policy::Delivery && !is_on(Outside::NoBarrier) {
            fence(Ordering::Release);
        }
    }

    fn promote(&self) {
        if self.tried.swap(true, Relaxed) {
            // From the second try on nothing older is seen than in the one before. Without
            // this each of them could see each of the old values again.
            loom::thread::yield_now();
        }
        match self.policy {
            _ if is_on(Outside::NoBarrier) => {}
            Policy::Delivery => fence(Ordering::Acquire),
            Policy::Interrupt => {
                fence(Ordering::SeqCst);
                cpu::interrupt();
                fence(Ordering::SeqCst);
            }
        }
    }
}

/// A word of the writer's. Its operations are atomic on the writer's CPU because nothing
/// nests within them; for another CPU they are a load and a store.
pub struct LocalWord(AtomicU64);

impl LocalWord {
    fn change(&self, change: impl FnOnce(u64) -> u64) -> u64 {
        cpu::operation();
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
        cpu::operation();
        self.0.load(Ordering::Relaxed)
    }

    fn store(&self, value: u64) {
        cpu::operation();
        self.0.store(value, Ordering::Relaxed);
    }

    fn compare_exchange(&self, old: u64, new: u64) -> bool {
        cpu::operation();
        let same = self.0.load(Ordering::Relaxed) == old;
        if same {
            self.0.store(new, Ordering::Relaxed);
        }
        same
    }

    fn subtract(&self, value: u64) -> bool {
        self.change(|old| old - value) == 0
    }

    fn add(&self, value: u64) {
        self.change(|old| old.wrapping_add(value));
    }

    fn increment(&self) {
        self.add(1);
    }
}

/// A word of both sides'. The exchange is weaker than the full barrier that the ring is
/// promised.
pub struct SharedWord(AtomicU64);

impl Shared for SharedWord {
    fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    fn load(&self) -> u64 {
        cpu::operation();
        self.0.load(Ordering::Relaxed)
    }

    fn load_acquire(&self) -> u64 {
        cpu::operation();
        self.0.load(if is_on(Outside::RelaxedRcnt) {
            Ordering::Relaxed
        } else {
            Ordering::Acquire
        })
    }

    fn store(&self, value: u64) {
        cpu::operation();
        self.0.store(value, Ordering::Relaxed);
    }

    fn compare_exchange(&self, old: u64, new: u64) -> bool {
        cpu::operation();
        self.0
            .compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }
}
