// SPDX-License-Identifier: GPL-2.0

//! Names of call stacks, in all orders of two interruptions.

use super::map::stacks::{Stacks, STACK_WORDS};
use super::words::{run, with_fault, Fault, Interruption, Word};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::rc::Rc;

type TestStacks = Stacks<Word, Box<[Word]>>;

fn stacks(slots: usize) -> TestStacks {
    let words = (0..TestStacks::words(slots)).map(|_| Word(Cell::new(0)));
    Stacks::new(words.collect(), slots)
}

fn found(stacks: &TestStacks, name: u64) -> Option<Vec<u64>> {
    stacks.find(name).map(Iterator::collect)
}

#[cfg_attr(not(fault), test)]
pub fn stacks_keep_their_names() {
    let stacks = stacks(64);
    let all = [
        vec![],
        vec![1],
        vec![1, 2],
        vec![2, 1],
        vec![7; STACK_WORDS],
    ];
    let names = all.clone().map(|stack| stacks.name(&stack).unwrap());
    for (stack, name) in all.iter().zip(names) {
        assert_eq!(stacks.name(stack), Some(name));
        assert_eq!(found(&stacks, name).as_ref(), Some(stack));
    }
    assert_eq!(found(&stacks, names[0] ^ (1 << 63)), None);
}

/// A stack with the name of another one is refused.
#[cfg_attr(not(fault), test)]
pub fn equal_names() {
    let stacks = stacks(64);
    // A 0 at the begin does not change the hash.
    let name = stacks.name(&[5, 6]).unwrap();
    assert!(
        stacks.has(name) && !stacks.has(name ^ 2),
        "names that are known"
    );
    assert_eq!(stacks.name(&[0, 5, 6]), None, "a stack with another's name");
    assert_eq!(found(&stacks, name), Some(vec![5, 6]));
}

#[cfg_attr(not(fault), test)]
pub fn a_full_table_refuses() {
    let stacks = stacks(4);
    let names: Vec<_> = (1..100)
        .filter_map(|address| stacks.name(&[address]))
        .collect();
    assert_eq!(names.len(), 4);
    assert!(names.iter().all(|name| found(&stacks, *name).is_some()));
    let mut again = (1..100).filter_map(|address| stacks.name(&[address]));
    assert!(names.iter().all(|name| again.next() == Some(*name)));
}

/// Stacks that nested contexts have named.
struct Run {
    stacks: TestStacks,
    names: RefCell<BTreeMap<u64, Vec<u64>>>,
}

impl Run {
    fn name(&self, stack: &[u64]) {
        let name = self.stacks.name(stack).expect("room for the stack");
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
        assert_eq!(one.stacks.name(stack), Some(*name));
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
