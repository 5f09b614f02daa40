// SPDX-License-Identifier: GPL-2.0

//! Places of recently used keys. They save a hash computation for each event.

/// Number of kept places.
const KEPT: usize = 1 << 10;

/// The last key at each slot, and its place.
#[derive(Debug)]
pub struct Recent<K>(Vec<Option<(K, u32)>>);

impl<K> Default for Recent<K> {
    fn default() -> Self {
        Self((0..KEPT).map(|_| None).collect())
    }
}

impl<K: Clone + PartialEq> Recent<K> {
    /// Returns the place of a key. `number` is a number that few keys share. `find` finds a place that is not
    /// kept.
    pub fn place(&mut self, number: usize, key: K, find: impl FnOnce(K) -> u32) -> u32 {
        let slot = &mut self.0[number % KEPT];
        match slot {
            Some((known, place)) if *known == key => *place,
            _ => {
                let place = find(key.clone());
                *slot = Some((key, place));
                place
            }
        }
    }
}
