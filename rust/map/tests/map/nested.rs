// SPDX-License-Identifier: GPL-2.0

//! Nested updates: all executions in which two interruptions occur, one after the other or one in
//! the other, and reads at any moment.

use super::map::table::MapShape;
use super::words::{note, read, run, table, with_fault, Fault, Interruption, Sums, TestTable};
use std::cell::RefCell;
use std::panic::catch_unwind;
use std::rc::Rc;

/// A table, and the updates that began.
struct Run {
    table: TestTable,
    shape: MapShape,
    begun: RefCell<Sums>,
}

impl Run {
    fn new(slots: usize) -> Rc<Self> {
        let (table, shape) = table(2, slots);
        let begun = RefCell::default();
        Rc::new(Self {
            table,
            shape,
            begun,
        })
    }

    fn update(&self, key: u64, number: u64) {
        note(&mut self.begun.borrow_mut(), &[key, !key], number);
        self.table.update(&[key, !key], &[number, number, number]);
    }

    /// Reads at any moment: each key is complete, and no count is larger than that of the updates
    /// that began.
    fn peek(&self) {
        let sums = read(&self.table, &self.shape, 2);
        let begun = self.begun.borrow();
        for (key, entry) in sums {
            assert_eq!(key[1], !key[0]);
            assert!(entry.count <= begun[&key].count);
        }
    }

    /// Checks the table when no update runs.
    fn check(&self) {
        let overflow = self.table.overflow();
        let sums = read(&self.table, &self.shape, 2);
        if overflow.count == 0 {
            return assert_eq!(sums, *self.begun.borrow());
        }
        // With the overflow, counts and sums are complete.
        let begun = self.begun.borrow();
        let total = |sums: &Sums, of: fn(u64, u64) -> u64| {
            sums.values().fold((0, 0), |(count, sum), entry| {
                (of(count, entry.count), of(sum, entry.columns[0]))
            })
        };
        let add = u64::wrapping_add;
        let (count, sum) = total(&sums, add);
        let all = (add(count, overflow.count), add(sum, overflow.columns[0]));
        assert_eq!(all, total(&begun, add));
        // A key in a slot has the smallest and the largest number among the updates of its slots.
        for (key, entry) in &sums {
            assert!(entry.columns[1] >= begun[key].columns[1]);
            assert!(entry.columns[2] <= begun[key].columns[2]);
        }
    }
}

/// The updates of the interrupted context. The first two claim slots, the last finds one.
fn outer(run: &Run) {
    for (key, number) in [(1, 5), (2, 7), (1, 3)] {
        run.update(key, number);
    }
}

fn interruption(run: &Rc<Run>, at: usize, key: u64, number: u64) -> Interruption {
    let run = run.clone();
    (
        at,
        Rc::new(move || {
            run.peek();
            run.update(key, number);
        }),
    )
}

/// Runs all executions with two interruptions that update these keys.
fn search(slots: usize) {
    let accesses = run(|| outer(&Run::new(slots)), Vec::new());
    let mut executions = 0_u64;
    // An interruption adds accesses, in which the second one can occur.
    for first in 0..accesses {
        for second in first..accesses + 200 {
            for (a, b) in [(1, 1), (1, 2), (2, 1), (3, 3), (3, 1)] {
                let one = Run::new(slots);
                let interruptions = vec![
                    interruption(&one, first, a, 9),
                    interruption(&one, second, b, 1),
                ];
                run(|| outer(&one), interruptions);
                one.check();
                executions += 1;
            }
        }
    }
    assert!(executions > 10_000, "{executions}");
}

#[cfg_attr(not(fault), test)]
pub fn all_keys_have_slots() {
    search(64);
}

/// Four slots: keys have slots of other keys' windows.
#[cfg_attr(not(fault), test)]
pub fn keys_share_slots() {
    search(4);
}

/// The search fails on words with a fault.
#[test]
fn faults_are_found() {
    for fault in [Fault::AddInTwoSteps, Fault::ExchangeInTwoSteps] {
        let searched = with_fault(fault, || catch_unwind(|| search(64)));
        assert!(searched.is_err(), "{fault:?}");
    }
}

/// Two slots: keys overflow.
#[cfg_attr(not(fault), test)]
pub fn keys_overflow() {
    search(2);
}
