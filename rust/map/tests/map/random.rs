// SPDX-License-Identifier: GPL-2.0

//! Random updates, beside a model.

use super::map::pairs::BeginResult;
use super::map::table::MAX_KEY;
use super::pairs::pairs;
use super::words::{note, read, table, Sums};
use proptest::prelude::*;
use std::collections::BTreeMap;

proptest! {
    /// A table that is at most half full has all sums, of keys of any size.
    #[test]
    fn equals_the_model(
        key_words in 1..=MAX_KEY,
        updates in prop::collection::vec((0_u64..200, any::<u64>()), 0..500),
    ) {
        let (table, shape) = table(key_words, 1024);
        let mut model = Sums::new();
        for (key, number) in updates {
            let key: Vec<u64> = (0..key_words as u64).map(|word| key << (8 * word)).collect();
            note(&mut model, &key, number);
            table.update(&key, &[number, number, number]);
        }
        prop_assert_eq!(table.overflow().count, 0);
        prop_assert_eq!(read(&table, &shape, key_words), model);
    }

    /// No update is lost in a full table.
    #[test]
    fn counts_overflow(keys in prop::collection::vec(any::<u64>(), 0..400), slots in 1_usize..64) {
        let (table, shape) = table(1, slots);
        for key in &keys {
            table.update(&[*key], &[1, *key, *key]);
        }
        let sums = read(&table, &shape, 1);
        let overflow = table.overflow();
        let known: u64 = sums.values().map(|entry| entry.count).sum();
        let sum: u64 = sums.values().map(|entry| entry.columns[0]).sum();
        prop_assert_eq!(known + overflow.count, keys.len() as u64);
        prop_assert_eq!(sum + overflow.columns[0], keys.len() as u64);
        prop_assert!(overflow.count == 0 || keys.len() > shape.slots().min(32));
        let sums_of_all = sums.values().chain([&overflow]);
        let (least, most) = sums_of_all.fold((u64::MAX, 0), |(least, most), entry| {
            (entry.columns[1].min(least), entry.columns[2].max(most))
        });
        prop_assert_eq!(least, keys.iter().copied().min().unwrap_or(u64::MAX));
        prop_assert_eq!(most, keys.iter().copied().max().unwrap_or(0));
    }

    /// While nothing is evicted, the table of begins equals a map.
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
