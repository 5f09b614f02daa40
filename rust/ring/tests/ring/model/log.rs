// SPDX-License-Identifier: GPL-2.0

//! The fired records, and the fate of each.

use std::cell::{Cell, RefCell};

/// Fate of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Fired, and not completely written yet.
    Pending,
    /// Completely written.
    Written,
    /// Refused.
    Lost,
    /// In a packet that the reader has put.
    Read,
}

/// A record that was fired.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub len: u64,
    pub time: u64,
    pub fate: Fate,
}

/// All fired records, and the clock.
pub struct Log {
    records: RefCell<Vec<Record>>,
    clock: Cell<u64>,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            // (The capacity is enough for most executions; a search has millions of them.)
            records: RefCell::new(Vec::with_capacity(32)),
            clock: Cell::new(0),
        }
    }
}

impl Log {
    /// Returns the time; each call returns a later one.
    pub fn now(&self) -> u64 {
        self.clock.set(self.clock.get() + 1);
        self.clock.get()
    }

    /// Fires a record and returns its id.
    pub fn fire(&self, len: u64) -> u32 {
        let mut records = self.records.borrow_mut();
        records.push(Record {
            len,
            time: 0,
            fate: Fate::Pending,
        });
        records.len() as u32 - 1
    }

    /// Sets the fate of a record, and its time.
    pub fn set(&self, id: u32, time: u64, fate: Fate) {
        let record = &mut self.records.borrow_mut()[id as usize];
        record.time = time;
        record.fate = fate;
    }

    /// Marks a record as seen by the reader, which may see it once.
    pub fn read(&self, id: u32) {
        let record = &mut self.records.borrow_mut()[id as usize];
        assert_eq!(record.fate, Fate::Written, "record {id} was read twice");
        record.fate = Fate::Read;
    }

    pub fn get(&self, id: u32) -> Record {
        self.records.borrow()[id as usize]
    }

    /// Number of records fired, lost ones included.
    pub fn fired(&self) -> u64 {
        self.records.borrow().len() as u64
    }

    pub fn count(&self, fate: Fate) -> u64 {
        let records = self.records.borrow();
        records.iter().filter(|record| record.fate == fate).count() as u64
    }
}
