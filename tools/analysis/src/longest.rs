// SPDX-License-Identifier: GPL-2.0

//! The longest of many operations.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Number of operations that are kept.
const KEPT: usize = 20;

/// The [`KEPT`] longest of all operations that were added.
#[derive(Debug)]
pub struct Longest<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
}

/// An operation. The longest is the greatest, and among equally long ones the earliest.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry<T> {
    /// Duration.
    pub nanoseconds: u64,
    /// Begin, in clock ticks.
    pub since: Reverse<u64>,
    /// Description of the operation.
    pub what: T,
}

impl<T: Ord> Longest<T> {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
        }
    }

    /// Returns whether an operation of this duration would be kept.
    pub fn keeps(&self, nanoseconds: u64) -> bool {
        let is_longer = |Reverse(least): &Reverse<Entry<T>>| nanoseconds > least.nanoseconds;
        self.heap.len() < KEPT || self.heap.peek().is_some_and(is_longer)
    }

    /// Adds an operation that began at `since`, in clock ticks. Calls `what` for its description only if
    /// the operation is kept.
    pub fn add(&mut self, nanoseconds: u64, since: u64, what: impl FnOnce() -> T) {
        if !self.keeps(nanoseconds) {
            return;
        }
        if self.heap.len() == KEPT {
            self.heap.pop();
        }
        self.heap.push(Reverse(Entry {
            nanoseconds,
            since: Reverse(since),
            what: what(),
        }));
    }

    /// Returns all kept operations, the longest first.
    pub fn into_sorted(self) -> impl Iterator<Item = Entry<T>> {
        let sorted = self.heap.into_sorted_vec().into_iter();
        sorted.map(|Reverse(entry)| entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_are_kept() {
        let mut longest = Longest::new();
        for time in 0..1000 {
            longest.add(time * 7 % 100, time, || time);
        }
        let kept: Vec<_> = longest.into_sorted().collect();
        let mut all: Vec<_> = (0..1000).map(|time| (time * 7 % 100, time)).collect();
        all.sort_by_key(|&(nanoseconds, time)| (Reverse(nanoseconds), time));
        let found = kept.iter().map(|entry| (entry.nanoseconds, entry.what));
        assert_eq!(found.collect::<Vec<_>>(), all[..KEPT]);
    }
}
