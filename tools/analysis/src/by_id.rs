// SPDX-License-Identifier: GPL-2.0

//! A map from ids of threads and processes.

use ahash::{HashMap, HashMapExt};

/// Ids below this number use an index: `PID_MAX_LIMIT` of a 64-bit kernel (`include/linux/threads.h`).
const NEAR: usize = 1 << 22;

/// Ids per page of the index.
const PAGE: usize = 1 << 10;

/// No entry.
const NONE: u32 = u32::MAX;

/// A map from ids. An index finds the ids that a kernel can assign; a hash map finds the others.
#[derive(Debug)]
pub struct ById<T> {
    /// By id: the number of its entry, or [`NONE`]. A page exists if one of its ids was inserted, so that a few
    /// large ids need little memory.
    near: Vec<Option<Box<[u32; PAGE]>>>,
    far: HashMap<i64, u32>,
    entries: Vec<(i64, T)>,
}

impl<T> Default for ById<T> {
    fn default() -> Self {
        Self {
            near: Vec::new(),
            far: HashMap::new(),
            entries: Vec::new(),
        }
    }
}

impl<T> ById<T> {
    #[inline]
    fn place(&self, id: i64) -> Option<usize> {
        let near = usize::try_from(id).ok().filter(|id| *id < NEAR);
        let place = match near {
            Some(id) => self.near.get(id / PAGE)?.as_ref()?[id % PAGE],
            None => *self.far.get(&id)?,
        };
        (place != NONE).then_some(place as usize)
    }

    /// Sets the number of an id's entry.
    fn set(&mut self, id: i64, place: u32) {
        match usize::try_from(id).ok().filter(|id| *id < NEAR) {
            Some(id) => {
                if self.near.len() <= id / PAGE {
                    self.near.resize(id / PAGE + 1, None);
                }
                let page = self.near[id / PAGE].get_or_insert_with(|| Box::new([NONE; PAGE]));
                page[id % PAGE] = place;
            }
            None if place == NONE => {
                self.far.remove(&id);
            }
            None => {
                self.far.insert(id, place);
            }
        }
    }

    /// Returns the value of an id.
    #[inline]
    pub fn get(&self, id: i64) -> Option<&T> {
        let place = self.place(id)?;
        self.entries.get(place).map(|(_, value)| value)
    }

    /// Returns a mutable reference to the value of an id.
    #[inline]
    pub fn get_mut(&mut self, id: i64) -> Option<&mut T> {
        let place = self.place(id)?;
        self.entries.get_mut(place).map(|(_, value)| value)
    }

    /// Sets the value of an id. Returns a reference to it.
    pub fn insert(&mut self, id: i64, value: T) -> &mut T {
        let place = match self.place(id) {
            Some(place) => {
                self.entries[place].1 = value;
                place
            }
            None => {
                self.set(id, self.entries.len() as u32);
                self.entries.push((id, value));
                self.entries.len() - 1
            }
        };
        &mut self.entries[place].1
    }

    /// Removes an id.
    pub fn remove(&mut self, id: i64) {
        let Some(place) = self.place(id) else {
            return;
        };
        self.set(id, NONE);
        self.entries.swap_remove(place);
        if let Some(&(moved, _)) = self.entries.get(place) {
            self.set(moved, place as u32);
        }
    }

    /// Returns all values with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (i64, &T)> {
        self.entries.iter().map(|(id, value)| (*id, value))
    }

    /// Returns all values with their ids, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (i64, &mut T)> {
        self.entries.iter_mut().map(|(id, value)| (*id, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_id_is_found() {
        let ids = [
            0,
            5,
            -1,
            i64::MAX,
            i64::MIN,
            70_000,
            NEAR as i64,
            NEAR as i64 - 1,
        ];
        let (mut map, mut model) = (ById::default(), BTreeMap::new());
        for step in 0..2000_usize {
            let id = ids[(step * 7 % 8) ^ (step % 3)];
            if step % 5 == 4 {
                map.remove(id);
                model.remove(&id);
            } else {
                *map.insert(id, 0) = step;
                model.insert(id, step);
            }
            for id in ids {
                assert_eq!(map.get(id), model.get(&id), "{id} after step {step}");
            }
            let mut all: Vec<_> = map.iter_mut().map(|(id, value)| (id, *value)).collect();
            all.sort_unstable();
            assert!(all
                .into_iter()
                .eq(model.iter().map(|(id, value)| (*id, *value))));
        }
    }
}
