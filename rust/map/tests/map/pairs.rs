// SPDX-License-Identifier: GPL-2.0

//! Begins and ends, in all orders of two interruptions, and beside a model.

use super::words::{run, with_fault, Fault, Interruption, Word};
use proptest::prelude::*;
use rtrace_map::pairs::{BeginResult, Pairs};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::rc::Rc;

type TestPairs = Pairs<Word, Box<[Word]>>;

fn pairs(slots: usize) -> TestPairs {
    let words = (0..TestPairs::words(slots)).map(|_| Word(Cell::new(0)));
    Pairs::new(words.collect(), slots)
}

#[test]
fn a_begin_has_one_end() {
    let pairs = pairs(16);
    let (one, other) = ([1, 2], [2, 1]);
    assert_eq!(pairs.end(&one).since, None);
    assert_eq!(pairs.begin(&one, 5), BeginResult::New);
    assert_eq!(pairs.end(&other).since, None);
    assert_eq!(pairs.begin(&other, 6), BeginResult::New);
    assert_eq!(pairs.begin(&one, 7), BeginResult::Repeated);
    assert_eq!(
        (pairs.end(&one).since, pairs.end(&other).since),
        (Some(7), Some(6))
    );
    assert_eq!(
        (pairs.end(&one).since, pairs.end(&other).since),
        (None, None)
    );
}

#[test]
fn the_oldest_begin_gives_way() {
    // All slots are one window.
    let pairs = pairs(1);
    assert_eq!(TestPairs::words(1), 4 * 4);
    for key in 0..4 {
        assert_eq!(pairs.begin(&[key, 0], 10 + (key ^ 2)), BeginResult::New);
    }
    assert_eq!(pairs.begin(&[4, 0], 20), BeginResult::Evicted);
    let left: Vec<_> = (0..5).map(|key| pairs.end(&[key, 0]).since).collect();
    assert_eq!(left, [Some(12), Some(13), None, Some(11), Some(20)]);
}

proptest! {
    /// While nothing is evicted, the table equals a map.
    #[test]
    fn equals_a_map(steps in prop::collection::vec((any::<bool>(), 0_u64..12), 0..300)) {
        let pairs = pairs(1 << 12);
        let mut model = BTreeMap::new();
        for (time, (begins, key)) in (1..).zip(steps) {
            if begins {
                let known = model.insert(key, time).is_some();
                let expected = if known { BeginResult::Repeated } else { BeginResult::New };
                prop_assert_eq!(pairs.begin(&[key, key], time), expected);
            } else {
                prop_assert_eq!(pairs.end(&[key, key]).since, model.remove(&key));
            }
        }
    }
}

/// Begins and ends of one key, in nested contexts.
struct Run {
    pairs: TestPairs,
    time: Cell<u64>,
    /// Times of the begins that were noted, and of those that had an end.
    begun: RefCell<Vec<u64>>,
    ended: RefCell<Vec<u64>>,
}

impl Run {
    fn step(&self, begins: bool) {
        if begins {
            let time = self.time.get();
            self.time.set(time + 1);
            self.begun.borrow_mut().push(time);
            self.pairs.begin(&[7, 7], time);
        } else if let Some(since) = self.pairs.end(&[7, 7]).since {
            self.ended.borrow_mut().push(since);
        }
    }
}

const OUTER: [bool; 5] = [true, false, true, true, false];

fn execution(interruptions: impl FnOnce(&Rc<Run>) -> Vec<Interruption>) -> (Rc<Run>, usize) {
    let one = Rc::new(Run {
        pairs: pairs(1),
        time: Cell::new(1),
        begun: RefCell::default(),
        ended: RefCell::default(),
    });
    let interruptions = interruptions(&one);
    let accesses = run(
        || OUTER.iter().for_each(|begins| one.step(*begins)),
        interruptions,
    );
    (one, accesses)
}

#[test]
fn nested_contexts() {
    search();
}

/// The search fails on words with a fault.
#[test]
fn faults_are_found() {
    let searched = with_fault(Fault::ExchangeInTwoSteps, || catch_unwind(search));
    assert!(searched.is_err());
}

/// Each end has a begin, and no begin has two ends. After all contexts ended, the table is usable.
fn search() {
    let (_, accesses) = execution(|_| Vec::new());
    for first in 0..accesses {
        for second in first..accesses + 60 {
            for steps in [[true, true], [true, false], [false, true], [false, false]] {
                let (one, _) = execution(|one| {
                    let interruption = |at, begins| -> Interruption {
                        let one = one.clone();
                        (at, Rc::new(move || one.step(begins)))
                    };
                    vec![
                        interruption(first, steps[0]),
                        interruption(second, steps[1]),
                    ]
                });
                let mut ended = one.ended.borrow().clone();
                let count = ended.len();
                ended.sort_unstable();
                ended.dedup();
                assert_eq!(ended.len(), count, "a begin had two ends");
                assert!(ended.iter().all(|time| one.begun.borrow().contains(time)));
                while one.pairs.end(&[7, 7]).since.is_some() {}
                assert_eq!(one.pairs.begin(&[7, 7], 99), BeginResult::New);
                assert_eq!(one.pairs.end(&[7, 7]).since, Some(99));
            }
        }
    }
}
