// SPDX-License-Identifier: GPL-2.0

//! What was fired. Not part of what is modelled: it takes no time and orders nothing.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// As many records as there are in the longest run.
const RECORDS: usize = 4096;

/// Each record that was fired, and how many were lost.
pub struct Log {
    /// Of each record the length, and the time once it is written.
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
    /// The time, from 1; it never stands still.
    pub fn now(&self) -> u64 {
        self.clock.fetch_add(1, Relaxed) + 1
    }

    /// A new record's id.
    pub fn fire(&self, len: u64) -> u64 {
        let id = self.fired.fetch_add(1, Relaxed);
        self.records[id as usize].store(len << 32, Relaxed);
        id
    }

    /// It is completely written.
    pub fn wrote(&self, id: u64, len: u64, time: u64) {
        self.records[id as usize].store((len << 32) | time, Relaxed);
    }

    /// Its length, and its time if it is completely written.
    pub fn get(&self, id: u64) -> (u64, Option<u64>) {
        let record = self.records[id as usize].load(Relaxed);
        let time = record & u64::from(u32::MAX);
        (record >> 32, (time != 0).then_some(time))
    }

    /// One that was fired did not get in.
    pub fn lose(&self) {
        self.lost.fetch_add(1, Relaxed);
    }

    /// How many were fired, lost ones too.
    pub fn fired(&self) -> u64 {
        self.fired.load(Relaxed)
    }

    /// How many of them did not get in.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }
}
