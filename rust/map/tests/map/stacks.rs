// SPDX-License-Identifier: GPL-2.0

//! Names of call stacks, in all orders of two interruptions.

use super::map::stacks::Stacks;
use super::words::{run, with_fault, Fault, Interruption, Word};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::rc::Rc;

type TestStacks = Stacks<Word, Box<[Word]>>;

/// Number of addresses for which slots have room.
const ROOM: usize = 64;

fn stacks_with_room(slots: usize, room: usize) -> TestStacks {
    let words = (0..TestStacks::words(slots, room)).map(|_| Word(Cell::new(0)));
    Stacks::new(words.collect(), slots, room)
}

fn stacks(slots: usize) -> TestStacks {
    stacks_with_room(slots, ROOM)
}

fn found(stacks: &TestStacks, name: u64) -> Option<Vec<u64>> {
    Some(stacks.find(name)?.addresses.collect())
}

#[cfg_attr(not(fault), test)]
pub fn stacks_keep_their_names() {
    let stacks = stacks(64);
    let all = [vec![], vec![1], vec![1, 2], vec![2, 1], vec![7; ROOM]];
    let names = all.clone().map(|stack| stacks.name(&stack, 0).unwrap());
    for (stack, name) in all.iter().zip(names) {
        assert_eq!(stacks.name(stack, 0), Some(name));
        assert_eq!(found(&stacks, name).as_ref(), Some(stack));
    }
    assert_eq!(found(&stacks, names[0] ^ (1 << 63)), None);
}

/// A stack with the name of another one is refused.
#[cfg_attr(not(fault), test)]
pub fn equal_names() {
    let stacks = stacks(64);
    // A 0 at the begin does not change the hash.
    let name = stacks.name(&[5, 6], 0).unwrap();
    assert!(
        stacks.has(name) && !stacks.has(name ^ 2),
        "names that are known"
    );
    assert_eq!(
        stacks.name(&[0, 5, 6], 0),
        None,
        "a stack with another's name"
    );
    assert_eq!(found(&stacks, name), Some(vec![5, 6]));
}

#[cfg_attr(not(fault), test)]
pub fn a_full_table_refuses() {
    let stacks = stacks(4);
    let names: Vec<_> = (1..100)
        .filter_map(|address| stacks.name(&[address], 0))
        .collect();
    assert_eq!(names.len(), 4);
    assert!(names.iter().all(|name| found(&stacks, *name).is_some()));
    let mut again = (1..100).filter_map(|address| stacks.name(&[address], 0));
    assert!(names.iter().all(|name| again.next() == Some(*name)));
}

/// Each slot has its room, and a longer stack is refused.
#[cfg_attr(not(fault), test)]
pub fn room_is_chosen() {
    for room in [1, 2, 63, 128] {
        let stacks = stacks_with_room(4, room);
        assert_eq!(TestStacks::words(4, room), 4 * (2 + room));
        let all: Vec<Vec<u64>> = (1..40).map(|address| vec![address; room]).collect();
        let named = all
            .iter()
            .filter_map(|stack| Some((stack, stacks.name(stack, 3)?)));
        let named: Vec<_> = named.collect();
        assert_eq!(named.len(), 4, "all slots are used");
        for (stack, name) in named {
            assert_eq!(found(&stacks, name).as_ref(), Some(stack));
        }
        let empty = stacks_with_room(4, room);
        assert_eq!(empty.name(&vec![7; room + 1], 0), None, "a longer stack");
        assert!(empty.name(&vec![7; room], 0).is_some(), "no slot was taken");
    }
}

/// Stacks with the same addresses differ if they end for other reasons.
#[cfg_attr(not(fault), test)]
pub fn ends_are_part_of_names() {
    let stacks = stacks(64);
    let ends = [0, 1, 7, 16, 255];
    let names = ends.map(|end| stacks.name(&[5, 6], end).unwrap());
    for (end, name) in ends.iter().zip(names) {
        assert_eq!(stacks.name(&[5, 6], *end), Some(name), "{end}");
        assert_eq!(stacks.find(name).unwrap().end, *end);
        assert_eq!(found(&stacks, name), Some(vec![5, 6]));
    }
    let distinct: std::collections::BTreeSet<_> = names.into_iter().collect();
    assert_eq!(distinct.len(), ends.len());
}

/// Stacks that nested contexts have named.
struct Run {
    stacks: TestStacks,
    names: RefCell<BTreeMap<u64, Vec<u64>>>,
}

impl Run {
    fn name(&self, stack: &[u64]) {
        let name = self.stacks.name(stack, 0).expect("room for the stack");
        let known = self.names.borrow_mut().insert(name, stack.to_vec());
        assert!(known.is_none_or(|known| known == stack));
        assert_eq!(
            found(&self.stacks, name).as_deref(),
            Some(stack),
            "the stack of a name"
        );
    }
}

fn execution(interruptions: &[(usize, [u64; 2])]) -> usize {
    let one = Rc::new(Run {
        stacks: stacks(16),
        names: RefCell::default(),
    });
    let interruptions = interruptions.iter().map(|(at, stack)| -> Interruption {
        let (one, stack) = (one.clone(), *stack);
        (*at, Rc::new(move || one.name(&stack)))
    });
    let accesses = run(
        || {
            [[3, 4], [8, 9], [3, 4]]
                .iter()
                .for_each(|stack| one.name(stack))
        },
        interruptions.collect(),
    );
    for (name, stack) in one.names.borrow().iter() {
        assert_eq!(found(&one.stacks, *name).as_ref(), Some(stack));
        assert_eq!(one.stacks.name(stack, 0), Some(*name));
    }
    accesses
}

#[cfg_attr(not(fault), test)]
pub fn nested_contexts() {
    let accesses = execution(&[]);
    for first in 0..accesses {
        for second in first..accesses + 10 {
            for (one, other) in [([3, 4], [3, 4]), ([3, 4], [8, 9]), ([8, 9], [5, 5])] {
                execution(&[(first, one), (second, other)]);
            }
        }
    }
}

/// The search fails on words with a fault.
#[test]
fn faults_are_found() {
    let searched = with_fault(Fault::ExchangeInTwoSteps, || catch_unwind(nested_contexts));
    assert!(searched.is_err());
}
