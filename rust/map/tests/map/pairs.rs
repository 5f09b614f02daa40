// SPDX-License-Identifier: GPL-2.0

//! Begins and ends, in all orders of two interruptions, and beside a model.

use super::map::pairs::{BeginResult, Pairs};
use super::map::word::SharedMapWord;
use super::words::{run, same_hash, with_fault, Fault, Interruption, Word};
use std::cell::{Cell, RefCell};
use std::panic::catch_unwind;
use std::rc::Rc;

pub type TestPairs = Pairs<Word, Box<[Word]>>;

pub fn pairs(slots: usize) -> TestPairs {
    pairs_with(slots, 0)
}

fn pairs_with(slots: usize, kept: usize) -> TestPairs {
    let words = (0..TestPairs::words(slots, kept)).map(|_| Word(Cell::new(0)));
    Pairs::new(words.collect(), slots, kept)
}

#[cfg_attr(not(fault), test)]
pub fn a_begin_has_one_end() {
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

#[cfg_attr(not(fault), test)]
pub fn the_oldest_begin_gives_way() {
    // All slots are one window.
    let pairs = pairs(1);
    assert_eq!(TestPairs::words(1, 3), 4 * 7);
    for key in 0..4 {
        assert_eq!(pairs.begin(&[key, 0], 10 + (key ^ 2)), BeginResult::New);
    }
    assert_eq!(pairs.begin(&[4, 0], 20), BeginResult::Evicted);
    let left: Vec<_> = (0..5).map(|key| pairs.end(&[key, 0]).since).collect();
    assert_eq!(left, [Some(12), Some(13), None, Some(11), Some(20)]);
}

/// The end reads the words of the latest begin.
#[cfg_attr(not(fault), test)]
pub fn words_stay_with_their_begin() {
    let pairs = pairs_with(4, 2);
    for (number, word) in [(1, 10), (2, 20), (1, 11), (3, 30), (4, 40)] {
        pairs.begin_with(&[number, 0], word, |kept| {
            kept[0].store(word);
            kept[1].store(word + 1);
        });
    }
    for (number, word) in [(1, 11), (2, 20), (3, 30), (4, 40)] {
        let mut read = Vec::new();
        let end = pairs.end_with(&[number, 0], |kept| {
            read = kept.iter().map(Word::load).collect();
        });
        assert_eq!((end.since, read), (Some(word), vec![word, word + 1]));
    }
}

/// A begin that interrupts a begin of the same key uses another slot. The end takes both, and has the later time.
#[cfg_attr(not(fault), test)]
pub fn the_latest_of_two_begins() {
    let mut both = 0;
    for at in 0..100 {
        let pairs = Rc::new(pairs(1));
        let nested = pairs.clone();
        let begin = move || assert_ne!(nested.begin(&[7, 7], 2), BeginResult::Busy);
        run(
            || assert_ne!(pairs.begin(&[7, 7], 1), BeginResult::Busy),
            vec![(at, Rc::new(begin))],
        );
        let end = pairs.end(&[7, 7]);
        if end.repeated == 1 {
            assert_eq!(end.since, Some(2), "the latest begin");
            both += 1;
        }
    }
    assert!(both > 0);
}

/// Begins and ends of two keys with the same hash, in nested contexts.
struct Run {
    pairs: TestPairs,
    keys: [[u64; 2]; 2],
    time: Cell<u64>,
    /// Begins that are noted, and those that had an end: the key, and the time.
    begun: RefCell<Vec<(usize, u64)>>,
    ended: RefCell<Vec<(usize, u64)>>,
    /// Number of begins that are counted as repeated or evicted.
    counted: Cell<u64>,
}

/// A begin or an end of one of the keys.
#[derive(Clone, Copy)]
enum Step {
    Begin(usize),
    End(usize),
}

use Step::{Begin, End};

impl Run {
    fn step(&self, step: Step) {
        match step {
            Begin(key) => {
                let time = self.time.get();
                self.time.set(time + 1);
                // Noted before the end of a nested context may find it.
                self.begun.borrow_mut().push((key, time));
                match self.pairs.begin(&self.keys[key], time) {
                    BeginResult::New => {}
                    BeginResult::Repeated | BeginResult::Evicted => self.count(1),
                    BeginResult::Busy => {
                        let mut begun = self.begun.borrow_mut();
                        begun.retain(|begin| *begin != (key, time));
                    }
                }
            }
            End(key) => {
                let end = self.pairs.end(&self.keys[key]);
                self.count(end.repeated);
                if let Some(since) = end.since {
                    self.ended.borrow_mut().push((key, since));
                }
            }
        }
    }

    fn count(&self, begins: u64) {
        self.counted.set(self.counted.get() + begins);
    }

    /// Checks the table when no context uses it.
    fn check(&self) {
        for key in 0..2 {
            self.step(End(key));
            let end = self.pairs.end(&self.keys[key]);
            assert_eq!(end.since, None, "an end leaves a begin");
        }
        let mut ended = self.ended.borrow().clone();
        let begun = self.begun.borrow();
        let all = ended.len() as u64 + self.counted.get();
        // The begins of other keys that fill the table are still there, or are counted.
        let left = (0..3).filter(|key| self.pairs.end(&other(*key)).since.is_some());
        let noted = begun.len() as u64 + if self.is_full() { 3 } else { 0 };
        assert!(
            ended.iter().all(|end| begun.contains(end)),
            "an end without its begin"
        );
        ended.sort_unstable();
        ended.dedup();
        assert_eq!(
            ended.len(),
            self.ended.borrow().len(),
            "a begin had two ends"
        );
        assert_eq!(all + left.count() as u64, noted, "a begin is lost");
        for key in self.keys {
            assert_eq!(self.pairs.begin(&key, 99), BeginResult::New);
            assert_eq!(self.pairs.end(&key).since, Some(99));
        }
    }

    fn is_full(&self) -> bool {
        self.time.get() >= FULL
    }
}

/// First time of a run in a table that has one free slot.
const FULL: u64 = 1000;

/// Another key than those of a run.
fn other(key: u64) -> [u64; 2] {
    [100 + key, key]
}

const OUTER: [Step; 5] = [Begin(0), End(0), Begin(0), Begin(0), End(0)];

fn execution(
    is_full: bool,
    interruptions: impl FnOnce(&Rc<Run>) -> Vec<Interruption>,
) -> (Rc<Run>, usize) {
    let one = Rc::new(Run {
        pairs: pairs(1),
        keys: same_hash(),
        time: Cell::new(if is_full { FULL } else { 1 }),
        begun: RefCell::default(),
        ended: RefCell::default(),
        counted: Cell::default(),
    });
    for key in (0..3).filter(|_| is_full) {
        one.pairs.begin(&other(key), 10 + key);
    }
    let interruptions = interruptions(&one);
    let accesses = run(
        || OUTER.iter().for_each(|step| one.step(*step)),
        interruptions,
    );
    (one, accesses)
}

#[cfg_attr(not(fault), test)]
pub fn nested_contexts() {
    search(false);
}

/// All slots are used or being changed: contexts evict begins, or find all slots busy.
#[cfg_attr(not(fault), test)]
pub fn nested_contexts_in_a_full_table() {
    search(true);
}

/// The search fails on words with a fault.
#[test]
fn faults_are_found() {
    let searched = with_fault(Fault::ExchangeInTwoSteps, || catch_unwind(|| search(false)));
    assert!(searched.is_err());
}

/// Each end has a begin of its key, and no begin has two ends or is lost. After all contexts ended, the table is
/// usable.
fn search(is_full: bool) {
    let (_, accesses) = execution(is_full, |_| Vec::new());
    let steps = [Begin(0), End(0), Begin(1), End(1)];
    for first in 0..accesses {
        for second in first..accesses + 60 {
            for one_step in steps {
                for other_step in steps {
                    let (one, _) = execution(is_full, |one| {
                        let interruption = |at, step| -> Interruption {
                            let one = one.clone();
                            (at, Rc::new(move || one.step(step)))
                        };
                        vec![
                            interruption(first, one_step),
                            interruption(second, other_step),
                        ]
                    });
                    one.check();
                }
            }
        }
    }
}
