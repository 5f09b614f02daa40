// SPDX-License-Identifier: GPL-2.0

//! The places of things that were looked up lately. They save a hash for each event.

/// Places that are kept.
const KEPT: usize = 1 << 10;

/// The last key at each slot, and its place.
#[derive(Debug)]
pub struct Recent<K>(Vec<Option<(K, u32)>>);

impl<K> Default for Recent<K> {
    fn default() -> Self {
        Self((0..KEPT).map(|_| None).collect())
    }
}

impl<K: Copy + PartialEq> Recent<K> {
    /// The place of a key. `number` is a number that few keys share.
    pub fn place(&mut self, number: usize, key: K, find: impl FnOnce() -> u32) -> u32 {
        let slot = &mut self.0[number % KEPT];
        match slot {
            Some((known, place)) if *known == key => *place,
            _ => {
                let place = find();
                *slot = Some((key, place));
                place
            }
        }
    }
}
