// SPDX-License-Identifier: GPL-2.0

//! Numbers for values that occur often.

use ahash::{HashMap, HashMapExt};
use std::hash::Hash;

/// Values, each with its number.
#[derive(Debug)]
pub struct Numbers<T> {
    numbers: HashMap<T, u32>,
    values: Vec<T>,
}

impl<T: Clone + Eq + Hash> Numbers<T> {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self {
            numbers: HashMap::new(),
            values: Vec::new(),
        }
    }

    /// Returns the number of a value. Adds the value if it is new.
    pub fn of(&mut self, value: T) -> u32 {
        if let Some(number) = self.numbers.get(&value) {
            return *number;
        }
        let number = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        self.values.push(value.clone());
        self.numbers.insert(value, number);
        number
    }

    /// Returns the value with this number.
    pub fn get(&self, number: u32) -> Option<&T> {
        self.values.get(number as usize)
    }
}
