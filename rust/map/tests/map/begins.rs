// SPDX-License-Identifier: GPL-2.0

//! Begins of small numbers, in all orders of two interruptions, and beside a model.

use super::map::begins::{NumberBegins, BEGIN_LIMIT, BEGIN_WORDS};
use super::map::pairs::BeginResult;
use super::words::{run, with_fault, Fault, Interruption, Word};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::rc::Rc;

type TestBegins = NumberBegins<Word, Box<[Word]>>;

/// Numbers of the same group differ by this.
const GROUPS: u64 = BEGIN_WORDS as u64 / 4;

fn begins() -> TestBegins {
    NumberBegins::new((0..BEGIN_WORDS).map(|_| Word(Cell::new(0))).collect())
}

#[test]
fn a_begin_has_one_end() {
    let begins = begins();
    let (one, other) = (7, 7 + GROUPS);
    assert_eq!(begins.end(one, 1).passed, None);
    assert_eq!(begins.begin(one, 5), BeginResult::New);
    assert_eq!(begins.end(other, 6).passed, None);
    assert_eq!(begins.begin(other, 6), BeginResult::New);
    assert_eq!(begins.begin(one, 7), BeginResult::Repeated);
    assert_eq!(begins.end(one, 20).passed, Some(13));
    assert_eq!(begins.end(other, 20).passed, Some(14));
    assert_eq!(begins.end(one, 20).passed, None);
    assert_eq!(begins.end(other, 20).passed, None);
}

#[test]
fn the_oldest_begin_gives_way() {
    let begins = begins();
    for number in 0..4 {
        let time = 10 + (number ^ 2);
        assert_eq!(begins.begin(3 + number * GROUPS, time), BeginResult::New);
    }
    assert_eq!(begins.begin(3 + 4 * GROUPS, 20), BeginResult::Evicted);
    let left: Vec<_> = (0..5)
        .map(|number| begins.end(3 + number * GROUPS, 30).passed)
        .collect();
    assert_eq!(left, [Some(18), Some(17), None, Some(19), Some(10)]);
}

#[test]
fn limits() {
    let begins = begins();
    assert_eq!(begins.begin(BEGIN_LIMIT - 1, 5), BeginResult::New);
    assert_eq!(begins.begin(BEGIN_LIMIT, 5), BeginResult::Busy);
    assert_eq!(begins.end(BEGIN_LIMIT, 5).passed, None);
    assert_eq!(begins.end(BEGIN_LIMIT - 1, 6).passed, Some(1));
    // The clock has more bits than a word has for it.
    let late = u64::MAX - 2;
    assert_eq!(begins.begin(1, late), BeginResult::New);
    assert_eq!(begins.end(1, 4).passed, Some(7));
    // The clock of another CPU is behind.
    assert_eq!(begins.begin(1, 9), BeginResult::New);
    assert_eq!(begins.end(1, 8).passed, Some(0));
}

/// A begin takes a free slot before a slot with an earlier begin of its number. The end takes both.
#[test]
fn two_slots_of_a_number() {
    let begins = begins();
    let (one, other) = (7, 7 + GROUPS);
    assert_eq!(begins.begin(other, 1), BeginResult::New);
    assert_eq!(begins.begin(one, 2), BeginResult::New);
    assert_eq!(begins.end_at_once(other, 3), Some(2));
    assert_eq!(begins.begin(one, 4), BeginResult::New);
    assert_eq!(begins.end_at_once(one, 9), None);
    let end = begins.end(one, 9);
    assert_eq!((end.passed, end.repeated), (Some(5), 1));
    assert_eq!(begins.end(one, 10).passed, None);
}

proptest! {
    /// While nothing is evicted, the table equals a map. Each begin has an end, or the results count it.
    #[test]
    fn equals_a_map(steps in prop::collection::vec((any::<bool>(), 0_u64..8), 0..300)) {
        let begins = begins();
        let mut model = BTreeMap::new();
        let (mut begun, mut counted) = (0, 0);
        let last = (0..8).map(|number| (false, number));
        for (time, (is_begin, number)) in (1..).zip(steps.into_iter().chain(last)) {
            // Two numbers in each of four groups.
            let key = number % 4 + (number / 4) * GROUPS;
            if is_begin {
                model.insert(key, time);
                let result = begins.begin(key, time);
                prop_assert!(matches!(result, BeginResult::New | BeginResult::Repeated));
                begun += 1;
                counted += u64::from(result == BeginResult::Repeated);
            } else {
                let end = begins.end(key, time);
                let since = model.remove(&key);
                prop_assert_eq!(end.passed, since.map(|since| time - since));
                counted += u64::from(since.is_some()) + end.repeated;
            }
        }
        prop_assert_eq!(begun, counted);
    }
}

/// Begins and ends of one number, in nested contexts.
struct Run {
    begins: Rc<TestBegins>,
    time: Cell<u64>,
    /// Times of the begins that were noted, and of those that had an end.
    begun: RefCell<Vec<u64>>,
    ended: RefCell<Vec<u64>>,
    /// Number of begins without an end, as the results say.
    without_end: Cell<u64>,
}

impl Run {
    fn step(&self, is_begin: bool) {
        if is_begin {
            let time = self.time.get();
            self.time.set(time + 1);
            self.begun.borrow_mut().push(time);
            let result = self.begins.begin(7, time);
            let lost = u64::from(result != BeginResult::New);
            self.without_end.set(self.without_end.get() + lost);
        } else {
            let end = self.begins.end(7, 1000);
            self.ended
                .borrow_mut()
                .extend(end.passed.map(|passed| 1000 - passed));
            self.without_end.set(self.without_end.get() + end.repeated);
        }
    }
}

const OUTER: [bool; 5] = [true, false, true, true, false];

fn execution(
    begins: &Rc<TestBegins>,
    interruptions: impl FnOnce(&Rc<Run>) -> Vec<Interruption>,
) -> (Rc<Run>, usize) {
    let one = Rc::new(Run {
        begins: begins.clone(),
        time: Cell::new(1),
        begun: RefCell::default(),
        ended: RefCell::default(),
        without_end: Cell::new(0),
    });
    let interruptions = interruptions(&one);
    let accesses = run(
        || OUTER.iter().for_each(|is_begin| one.step(*is_begin)),
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

/// Each end has a begin, and no begin has two ends. Each begin has an end, or the results count it.
fn search() {
    // Empty again after each execution.
    let begins = Rc::new(begins());
    let (one, accesses) = execution(&begins, |_| Vec::new());
    one.step(false);
    for first in 0..accesses {
        for second in first..accesses + 20 {
            for steps in [[true, true], [true, false], [false, true], [false, false]] {
                let (one, _) = execution(&begins, |one| {
                    let interruption = |at, is_begin| -> Interruption {
                        let one = one.clone();
                        (at, Rc::new(move || one.step(is_begin)))
                    };
                    vec![
                        interruption(first, steps[0]),
                        interruption(second, steps[1]),
                    ]
                });
                // Takes what is left.
                one.step(false);
                let mut ended = one.ended.borrow().clone();
                let count = ended.len();
                ended.sort_unstable();
                ended.dedup();
                assert_eq!(ended.len(), count, "a begin had two ends");
                assert!(ended.iter().all(|time| one.begun.borrow().contains(time)));
                let begun = one.begun.borrow().len() as u64;
                assert_eq!(begun, count as u64 + one.without_end.get());
                assert_eq!(one.begins.begin(7, 99), BeginResult::New);
                assert_eq!(one.begins.end(7, 100).passed, Some(1));
            }
        }
    }
}
