// SPDX-License-Identifier: GPL-2.0

//! Single cases of a table.

use super::map::table::{Column, MapShape, Table, MAX_COLUMNS, MAX_KEY, MAX_SLOTS};
use super::words::{hash, read, same_hash, table, TestTable, Word};
use std::cell::Cell;

#[cfg_attr(not(fault), test)]
pub fn full_window_overflows() {
    let (table, shape) = table(1, 32);
    for key in 0..33 {
        table.update(&[key], &[2, 0, 0]);
    }
    assert_eq!(read(&table, &shape, 1).len(), 32);
    assert_eq!(table.overflow().count, 1);
    assert_eq!(table.overflow().columns[..3], [2, 0, 0]);
}

/// Two keys whose hashes are equal stay apart.
#[cfg_attr(not(fault), test)]
pub fn equal_hashes() {
    let (table, shape) = table(2, 64);
    let keys = same_hash();
    for key in [keys[0], keys[1], keys[0]] {
        table.update(&key, &[5, 5, 5]);
    }
    let sums = read(&table, &shape, 2);
    let counts = keys.map(|key| sums[&key.to_vec()].count);
    assert_eq!(counts, [2, 1], "keys with equal hashes");
}

fn entries(table: &TestTable) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let result: Result<(), ()> = table.for_each(|entry| {
        found.push((entry.count, entry.columns[0]));
        Ok(())
    });
    result.unwrap();
    found
}

/// A known key is updated as any key is, if it is in the first of its slots.
#[cfg_attr(not(fault), test)]
pub fn known_keys() {
    let keys = same_hash();
    for (column, expected) in [(Column::Sum, 12), (Column::Min, 3), (Column::Max, 5)] {
        let shape = MapShape::new(2, &[column], 64).unwrap();
        let words = (0..shape.words()).map(|_| Word(Cell::new(0)));
        let table: TestTable = Table::new(words.collect(), shape);
        assert!(!table.update_known(&keys[0], Some(4)));
        assert_eq!(entries(&table), []);
        table.update(&keys[0], &[4]);
        table.update(&keys[1], &[9]);
        assert!(table.update_known(&keys[0], Some(5)));
        assert!(table.update_known(&keys[0], Some(3)));
        assert!(!table.update_known(&keys[1], Some(1)));
        assert_eq!(entries(&table), [(3, expected), (1, 9)]);
    }
}

/// The slot of a key follows from the upper bits of its hash.
#[cfg_attr(not(fault), test)]
pub fn slots_follow_the_hash() {
    let keys = [same_hash()[0], same_hash()[1]];
    assert_eq!(hash(&keys[0]), hash(&keys[1]));
    for key_words in 1..=3 {
        let (table, _) = table(key_words, 1 << 16);
        let mut keys: Vec<_> = (0..20_u64)
            .map(|number| [number, number * number, !number][..key_words].to_vec())
            .collect();
        for key in &keys {
            table.update(key, &[1, 1, 1]);
        }
        let mut found = Vec::new();
        let result: Result<(), ()> = table.for_each(|entry| {
            found.push(entry.key[..key_words].to_vec());
            Ok(())
        });
        result.unwrap();
        keys.sort_by_key(|key| hash(key) >> 48);
        assert_eq!(found, keys);
    }
}

#[test]
fn shapes() {
    assert!(MapShape::new(0, &[], 1).is_none());
    assert!(MapShape::new(MAX_KEY + 1, &[], 1).is_none());
    assert!(MapShape::new(1, &[Column::Sum; MAX_COLUMNS + 1], 1).is_none());
    assert!(MapShape::new(1, &[], 0).is_none());
    assert!(MapShape::new(1, &[], MAX_SLOTS + 1).is_none());
    let largest = MapShape::new(MAX_KEY, &[Column::Max; MAX_COLUMNS], MAX_SLOTS).unwrap();
    assert_eq!(largest.slots(), MAX_SLOTS);
    assert_eq!(largest.words(), MAX_SLOTS * 14 + 5);
    let smallest = MapShape::new(1, &[], 1).unwrap();
    assert_eq!((smallest.slots(), smallest.words()), (2, 2 * 3 + 1));
    assert_eq!(MapShape::new(1, &[], 1000).unwrap().slots(), 1024);
    assert_eq!(
        MapShape::new(1, &[Column::Min], 4).unwrap().columns(),
        [Column::Min]
    );
}
