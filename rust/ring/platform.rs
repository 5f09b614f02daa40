// SPDX-License-Identifier: GPL-2.0

//! The one seam between the algorithm and what it runs on.
//!
//! The kernel's implementation, with its instructions, is in `sys/`; the tests have
//! deterministic ones of their own.

use super::slot::Slots;

/// A word that only one CPU writes, in any of its contexts.
///
/// Operations are atomic with respect to interrupts and NMIs of that CPU, not to other
/// CPUs, and order nothing but program order on that CPU (they are compiler barriers). Any
/// CPU may [`load`](Self::load).
pub trait Local {
    /// Makes the word.
    fn new(value: u64) -> Self;
    /// Reads it.
    fn load(&self) -> u64;
    /// Writes it. Only where no nested context can write it.
    fn store(&self, value: u64);
    /// Writes `new` if the word is `old`, and says whether it did.
    fn compare_exchange(&self, old: u64, new: u64) -> bool;
    /// Subtracts, and says whether nothing is left.
    fn subtract(&self, value: u64) -> bool;
    /// Adds, wrapping.
    fn add(&self, value: u64);
    /// Adds 1, wrapping.
    fn increment(&self);
}

/// A word that several CPUs write.
pub trait Shared {
    /// Makes the word.
    fn new(value: u64) -> Self;
    /// Reads it, relaxed.
    fn load(&self) -> u64;
    /// Reads it; later accesses stay after (acquire).
    fn load_acquire(&self) -> u64;
    /// Writes it, relaxed. Only where nobody else may write it.
    fn store(&self, value: u64);
    /// Writes `new` if the word is `old`, and says whether it did. A full barrier on success.
    fn compare_exchange(&self, old: u64, new: u64) -> bool;
}

/// What a ring runs on.
pub trait Platform: Sized {
    /// Bits of a position and of every counter.
    const BITS: u32 = 64;
    /// See [`Local`].
    type Local: Local;
    /// See [`Shared`].
    type Shared: Shared;
    /// The ring's slots.
    type Slots: Slots<Self>;

    /// The writer's half of barrier W1: all the CPU wrote before is seen by a reader that sees
    /// what it writes next. May be only a compiler barrier if [`promote`](Self::promote) sends
    /// an interrupt.
    fn publish(&self);

    /// The reader's half, R1: after it, the reader sees everything the writer's CPU wrote
    /// before a word that the reader read earlier. With a mere compiler barrier on the
    /// writer's side this is: full barrier, make that CPU execute a full barrier, wait for
    /// it, full barrier (Algorithm 6).
    fn promote(&self);
}
