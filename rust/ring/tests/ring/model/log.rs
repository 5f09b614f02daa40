// SPDX-License-Identifier: GPL-2.0

//! What was fired, and what became of it.

use std::cell::{Cell, RefCell};

/// What became of a record.
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

/// All that was fired, and the clock.
pub struct Log {
    records: RefCell<Vec<Record>>,
    clock: Cell<u64>,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            // (As many as most executions fire: a search has millions of those.)
            records: RefCell::new(Vec::with_capacity(32)),
            clock: Cell::new(0),
        }
    }
}

impl Log {
    /// The time; it never stands still.
    pub fn now(&self) -> u64 {
        self.clock.set(self.clock.get() + 1);
        self.clock.get()
    }

    /// A new record's id.
    pub fn fire(&self, len: u64) -> u32 {
        let mut records = self.records.borrow_mut();
        records.push(Record {
            len,
            time: 0,
            fate: Fate::Pending,
        });
        records.len() as u32 - 1
    }

    /// What became of it, and when.
    pub fn set(&self, id: u32, time: u64, fate: Fate) {
        let record = &mut self.records.borrow_mut()[id as usize];
        record.time = time;
        record.fate = fate;
    }

    /// The reader has seen it, which it may once.
    pub fn read(&self, id: u32) {
        let record = &mut self.records.borrow_mut()[id as usize];
        assert_eq!(record.fate, Fate::Written, "record {id} was read twice");
        record.fate = Fate::Read;
    }

    pub fn get(&self, id: u32) -> Record {
        self.records.borrow()[id as usize]
    }

    /// How many were fired, lost ones too.
    pub fn fired(&self) -> u64 {
        self.records.borrow().len() as u64
    }

    pub fn count(&self, fate: Fate) -> u64 {
        let records = self.records.borrow();
        records.iter().filter(|record| record.fate == fate).count() as u64
    }
}
