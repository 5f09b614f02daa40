// SPDX-License-Identifier: GPL-2.0

//! The kernel as the ring sees it.

use crate::arch::word::{compiler_barrier, LocalWord, SharedWord};
use crate::ring::platform::{Local, Platform, Shared};
use crate::ring::slot::{Slot, Slots};
use crate::sys::chosen::Chosen;
use crate::sys::cpu;

/// Who pays for the order between a packet's bytes and the word that says it is finished.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Barriers {
    /// The reader: it interrupts the writer's CPU, which executes a full barrier (the paper's
    /// Algorithm 6). The writer has compiler barriers only.
    Interrupt,
    /// The writer, once per packet, at delivery. On x86 its stores are in order anyway.
    Delivery,
}

/// A ring's surroundings in the kernel.
pub(crate) struct Kernel {
    /// The CPU that writes.
    pub(crate) cpu: u32,
    pub(crate) barriers: Barriers,
}

impl Platform for Kernel {
    type Local = LocalWord;
    type Shared = SharedWord;
    type Slots = Chosen<Slot<Self>>;

    fn publish(&self) {
        // For `Delivery` this is a release. x86 keeps stores in order: the compiler must, too.
        compiler_barrier();
    }

    fn promote(&self) {
        match self.barriers {
            Barriers::Interrupt => {
                // An offline CPU (ENXIO) ordered all it wrote when it went.
                let _ = cpu::full_barrier_on(self.cpu);
            }
            // An acquire: x86 keeps loads in order.
            Barriers::Delivery => compiler_barrier(),
        }
    }
}

impl Slots<Kernel> for Chosen<Slot<Kernel>> {
    #[inline(always)]
    fn all(&self) -> &[Slot<Kernel>] {
        self.all()
    }
    #[inline(always)]
    fn open(&self) -> &Slot<Kernel> {
        self.get()
    }
    fn set_open(&self, index: u64) {
        self.choose(index as usize);
    }
}

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
