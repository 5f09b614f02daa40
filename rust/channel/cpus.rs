// SPDX-License-Identifier: GPL-2.0

//! The CPUs whose events a channel records.

use crate::sys::cpu;
use core::fmt;
use kernel::prelude::*;

/// A set of CPUs.
pub(crate) enum CpuSet {
    /// Each CPU, including those that come online later.
    All,
    /// The CPUs whose bit is set, from CPU 0 on.
    Some(KVec<u64>),
}

impl CpuSet {
    /// The empty set.
    pub(crate) fn none() -> Result<Self> {
        let words = (cpu::count() as usize).div_ceil(64);
        Ok(Self::Some(KVec::from_elem(0, words, GFP_KERNEL)?))
    }

    /// Adds `cpu`.
    pub(crate) fn add(&mut self, cpu: u32) {
        if let Self::Some(words) = self {
            if let Some(word) = words.get_mut(cpu as usize / 64) {
                *word |= 1 << (cpu % 64);
            }
        }
    }

    /// Whether the set has `cpu`. Any context.
    pub(crate) fn has(&self, cpu: u32) -> bool {
        match self {
            Self::All => true,
            Self::Some(words) => words
                .get(cpu as usize / 64)
                .is_some_and(|word| word & 1 << (cpu % 64) != 0),
        }
    }

    /// Writes the set as a list in the kernel's form (`0-3,5`), or `all`.
    pub(crate) fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        if let Self::All = self {
            return out.write_str("all");
        }
        let (mut cpu, mut separator) = (0, "");
        while cpu < cpu::count() {
            let first = cpu;
            while self.has(cpu) && cpu < cpu::count() {
                cpu += 1;
            }
            match cpu - first {
                0 => cpu += 1,
                1 => write!(out, "{separator}{first}")?,
                _ => write!(out, "{separator}{first}-{}", cpu - 1)?,
            }
            if cpu > first && self.has(first) {
                separator = ",";
            }
        }
        Ok(())
    }
}
