// SPDX-License-Identifier: GPL-2.0

//! The interface between the algorithm and the machine.
//!
//! `arch/platform.rs` implements it for the kernel. The tests have implementations of their own.

/// A word that only one CPU writes, from any of its contexts. Any CPU may load it.
///
/// Operations are atomic with respect to interrupts and NMIs of that CPU, but not to other CPUs.
pub trait MapWord {
    /// Returns the value; relaxed.
    fn load(&self) -> u64;
    /// Returns the value; later accesses stay after this load (acquire).
    fn load_acquire(&self) -> u64;
    /// Sets the value; relaxed. Only where no nested context can write the word.
    fn store(&self, value: u64);
    /// Sets the value; earlier accesses stay before this store (release). Only where no nested
    /// context can write the word.
    fn store_release(&self, value: u64);
    /// Writes `new` if the value is `old`. Returns whether it did.
    fn compare_exchange(&self, old: u64, new: u64) -> bool;
    /// Adds, wrapping.
    fn add(&self, value: u64);
    /// Adds 1, wrapping.
    #[inline(always)]
    fn increment(&self) {
        self.add(1);
    }
}

/// A word that several CPUs write.
pub trait SharedMapWord {
    /// Returns the value; relaxed.
    fn load(&self) -> u64;
    /// Returns the value; later accesses stay after this load (acquire).
    fn load_acquire(&self) -> u64;
    /// Sets the value; relaxed. Only where no other context may write the word.
    fn store(&self, value: u64);
    /// Sets the value; earlier accesses stay before this store (release). Only where no other context
    /// may write the word.
    fn store_release(&self, value: u64);
    /// Writes `new` if the value is `old`. Returns whether it did. A full barrier on success.
    fn compare_exchange(&self, old: u64, new: u64) -> bool;
}
