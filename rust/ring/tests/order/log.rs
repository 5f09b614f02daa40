// SPDX-License-Identifier: GPL-2.0

//! Log of the fired records. It is not part of the modelled accesses: it takes no time and orders
//! no access.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Maximum number of records in a run.
const RECORDS: usize = 4096;

/// The fired records, and the number of lost ones.
pub struct Log {
    /// Length of each record, and its time after it is written.
    records: Box<[AtomicU64]>,
    fired: AtomicU64,
    lost: AtomicU64,
    clock: AtomicU64,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            records: (0..RECORDS).map(|_| AtomicU64::new(0)).collect(),
            fired: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            clock: AtomicU64::new(0),
        }
    }
}

impl Log {
    /// Returns the time, from 1; each call returns a later one.
    pub fn now(&self) -> u64 {
        self.clock.fetch_add(1, Relaxed) + 1
    }

    /// Fires a record and returns its id.
    pub fn fire(&self, len: u64) -> u64 {
        let id = self.fired.fetch_add(1, Relaxed);
        self.records[id as usize].store(len << 32, Relaxed);
        id
    }

    /// Marks a record as completely written.
    pub fn wrote(&self, id: u64, len: u64, time: u64) {
        self.records[id as usize].store((len << 32) | time, Relaxed);
    }

    /// Returns the length of a record, and its time if it is completely written.
    pub fn get(&self, id: u64) -> (u64, Option<u64>) {
        let record = self.records[id as usize].load(Relaxed);
        let time = record & u64::from(u32::MAX);
        (record >> 32, (time != 0).then_some(time))
    }

    /// Counts a fired record that was refused.
    pub fn lose(&self) {
        self.lost.fetch_add(1, Relaxed);
    }

    /// Number of records fired, lost ones included.
    pub fn fired(&self) -> u64 {
        self.fired.load(Relaxed)
    }

    /// Number of records lost.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }
}
