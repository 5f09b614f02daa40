// SPDX-License-Identifier: GPL-2.0

//! A platform of two CPUs, with the weakest ordering that the ring's contract allows.

use super::cpu;
use super::outside::{is_on, Outside};
use super::ring::platform::{Local, Platform, Shared};
use super::slots::IndexedSlots;
use loom::sync::atomic::{fence, AtomicU64, Ordering};
// Not loom's: these words belong to the search, not to the modelled program.
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Selects the CPU that executes the barriers W1 and R1.
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
    /// Whether the current get has called `promote`.
    tried: AtomicBool,
}

impl Cpus {
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            tried: AtomicBool::new(false),
        }
    }

    /// Marks the beginning of a get.
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
            // From the second attempt on, the reader sees no older values than in the previous
            // attempt. Otherwise each attempt could see each of the old values again.
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

/// A word that only the writer's CPU writes. On that CPU each operation is atomic, because no
/// context nests within it. For the other CPU an operation is a load and a store.
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

/// A word that both CPUs write. The exchange is weaker than the full barrier of the ring's
/// contract.
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
