// SPDX-License-Identifier: GPL-2.0

//! Words at each access of which a context may be interrupted.

use super::map::table::{Column, MapEntry, MapShape, Table};
use super::map::word::{MapWord, SharedMapWord};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

pub type TestTable = Table<Word, Box<[Word]>>;

/// An interruption, before the access with this number.
pub type Interruption = (usize, Rc<dyn Fn()>);

/// A fault of the words, which the checks must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// An addition can be interrupted between its load and its store.
    AddInTwoSteps,
    /// A compare-and-exchange can be interrupted between its load and its store.
    ExchangeInTwoSteps,
}

thread_local! {
    static FAULT: Cell<Fault> = const { Cell::new(Fault::None) };
    static ACCESSES: Cell<usize> = const { Cell::new(0) };
    static PENDING: RefCell<Vec<Interruption>> = const { RefCell::new(Vec::new()) };
}

/// Runs `work` on words with a fault.
pub fn with_fault<R>(fault: Fault, work: impl FnOnce() -> R) -> R {
    FAULT.set(fault);
    let result = work();
    FAULT.set(Fault::None);
    result
}

/// Runs `work` with these interruptions, in the order of their accesses. Returns the number of
/// accesses, those of interruptions included.
pub fn run(work: impl FnOnce(), mut interruptions: Vec<Interruption>) -> usize {
    interruptions.reverse();
    PENDING.set(interruptions);
    ACCESSES.set(0);
    work();
    PENDING.take();
    ACCESSES.get()
}

pub struct Word(pub Cell<u64>);

impl Word {
    fn access(&self) -> &Cell<u64> {
        let access = ACCESSES.get();
        ACCESSES.set(access + 1);
        loop {
            let next = PENDING.with_borrow_mut(|pending| {
                let is_due = pending.last().is_some_and(|(at, _)| *at <= access);
                is_due.then(|| pending.pop()).flatten()
            });
            match next {
                Some((_, interrupt)) => interrupt(),
                None => return &self.0,
            }
        }
    }
}

impl SharedMapWord for Word {
    fn load(&self) -> u64 {
        self.access().get()
    }

    fn load_acquire(&self) -> u64 {
        self.access().get()
    }

    fn store(&self, value: u64) {
        self.access().set(value);
    }

    fn store_release(&self, value: u64) {
        self.access().set(value);
    }

    fn compare_exchange(&self, old: u64, new: u64) -> bool {
        MapWord::compare_exchange(self, old, new)
    }
}

impl MapWord for Word {
    fn load(&self) -> u64 {
        self.access().get()
    }

    fn load_acquire(&self) -> u64 {
        self.access().get()
    }

    fn store(&self, value: u64) {
        self.access().set(value);
    }

    fn store_release(&self, value: u64) {
        self.access().set(value);
    }

    fn compare_exchange(&self, old: u64, new: u64) -> bool {
        let word = self.access();
        let is_same = word.get() == old;
        if is_same && FAULT.get() == Fault::ExchangeInTwoSteps {
            self.access();
        }
        if is_same {
            word.set(new);
        }
        is_same
    }

    fn add(&self, value: u64) {
        let word = self.access();
        let sum = word.get().wrapping_add(value);
        if FAULT.get() == Fault::AddInTwoSteps {
            self.access();
        }
        word.set(sum);
    }
}

pub const COLUMNS: [Column; 3] = [Column::Sum, Column::Min, Column::Max];

pub fn table(key_words: usize, slots: usize) -> (TestTable, MapShape) {
    let shape = MapShape::new(key_words, &COLUMNS, slots).unwrap();
    let words = (0..shape.words()).map(|_| Word(Cell::new(0))).collect();
    (Table::new(words, shape), shape)
}

/// Sums of each key, and of the overflow under the empty key.
pub type Sums = BTreeMap<Vec<u64>, MapEntry>;

pub fn empty() -> MapEntry {
    MapEntry::empty(&MapShape::new(1, &COLUMNS, 1).unwrap())
}

/// Adds an update to the model.
pub fn note(sums: &mut Sums, key: &[u64], number: u64) {
    let entry = sums.entry(key.to_vec()).or_insert_with(empty);
    entry.key[..key.len()].copy_from_slice(key);
    entry.count += 1;
    entry.columns[0] = entry.columns[0].wrapping_add(number);
    entry.columns[1] = entry.columns[1].min(number);
    entry.columns[2] = entry.columns[2].max(number);
}

/// Reads a table, and adds up slots of the same key.
pub fn read(table: &TestTable, shape: &MapShape, key_words: usize) -> Sums {
    let mut sums = Sums::new();
    let result: Result<(), ()> = table.for_each(|entry| {
        let key = entry.key[..key_words].to_vec();
        let known = sums.entry(key).or_insert_with(empty);
        known.key = entry.key;
        known.merge(&entry, shape);
        Ok(())
    });
    result.unwrap();
    sums
}

/// A step of the hash of a key.
fn step(word: u64) -> u64 {
    word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
}

/// The hash of a key.
pub fn hash(key: &[u64]) -> u64 {
    let mixed = key.iter().fold(0, |hash, word| step(hash ^ word));
    mixed.rotate_right(32)
}

/// Two keys with the same hash. With another hash function, the fault `HashOnly` survives.
pub fn same_hash() -> [[u64; 2]; 2] {
    [[1, 7], [2, 7 ^ step(1) ^ step(2)]]
}
