// SPDX-License-Identifier: GPL-2.0

//! The interface between the algorithm and the machine.
//!
//! `arch/` and `channel/platform.rs` implement it for the kernel. The tests have deterministic
//! implementations of their own.

use super::slot::Slots;

/// A word that only one CPU writes, from any of its contexts.
///
/// Operations are atomic with respect to interrupts and NMIs of that CPU, but not to other CPUs.
/// They are compiler barriers: they order only the program order on that CPU. Any CPU may
/// [`load`](Self::load).
pub trait Local {
    /// Makes a word with this value.
    fn new(value: u64) -> Self;
    /// Returns the value.
    fn load(&self) -> u64;
    /// Sets the value. Only where no nested context can write the word.
    fn store(&self, value: u64);
    /// Writes `new` if the value is `old`. Returns whether it did.
    fn compare_exchange(&self, old: u64, new: u64) -> bool;
    /// Subtracts `value`. Returns whether 0 is left.
    fn subtract(&self, value: u64) -> bool;
    /// Adds, wrapping.
    fn add(&self, value: u64);
    /// Adds 1, wrapping.
    fn increment(&self);
}

/// A word that several CPUs write.
pub trait Shared {
    /// Makes a word with this value.
    fn new(value: u64) -> Self;
    /// Returns the value; relaxed.
    fn load(&self) -> u64;
    /// Returns the value; later accesses stay after this load (acquire).
    fn load_acquire(&self) -> u64;
    /// Sets the value; relaxed. Only where no other context may write the word.
    fn store(&self, value: u64);
    /// Writes `new` if the value is `old`. Returns whether it did. A full barrier on success.
    fn compare_exchange(&self, old: u64, new: u64) -> bool;
}

/// The machine that a ring runs on.
pub trait Platform: Sized {
    /// Number of bits of a position and of every counter.
    const BITS: u32 = 64;
    /// See [`Local`].
    type Local: Local;
    /// See [`Shared`].
    type Shared: Shared;
    /// The ring's slots.
    type Slots: Slots<Self>;

    /// The writer's half of barrier W1. A reader that sees a later store of this CPU also sees all
    /// its earlier stores. May be only a compiler barrier if [`promote`](Self::promote) sends an
    /// interrupt.
    fn publish(&self);

    /// The reader's half of the barrier, R1. Afterwards the reader sees everything that the
    /// writer's CPU wrote before a word that the reader has read. If the writer has only a compiler
    /// barrier, this is a full barrier, an interrupt that makes the writer's CPU execute a full
    /// barrier, the wait for that, and a full barrier (Algorithm 6).
    fn promote(&self);
}
