// SPDX-License-Identifier: GPL-2.0

//! A map from events.

use super::EventKey;
use ahash::HashMap;

/// Limits of the index. The module assigns channel numbers and event ids from 0 upwards.
const CLASSES: u32 = 16;
const IDS: u32 = 4096;

/// A map from events. Small numbers use an index; larger numbers, which only a hostile trace has, use a
/// hash map.
#[derive(Clone, Debug)]
pub struct ByEvent<T> {
    /// Values by stream class and id.
    classes: Vec<Vec<Option<T>>>,
    far: HashMap<EventKey, T>,
    /// Number of events.
    count: usize,
}

impl<T> Default for ByEvent<T> {
    fn default() -> Self {
        Self {
            classes: Vec::new(),
            far: HashMap::default(),
            count: 0,
        }
    }
}

impl<T> ByEvent<T> {
    /// Returns the value of an event.
    pub fn get(&self, key: &EventKey) -> Option<&T> {
        let ids = self.classes.get(key.0 as usize);
        match ids.and_then(|ids| ids.get(key.1 as usize)) {
            Some(Some(value)) => Some(value),
            _ if self.far.is_empty() => None,
            _ => self.far.get(key),
        }
    }

    /// Returns a mutable reference to the value of an event.
    pub fn get_mut(&mut self, key: &EventKey) -> Option<&mut T> {
        let ids = self.classes.get_mut(key.0 as usize);
        match ids.and_then(|ids| ids.get_mut(key.1 as usize)) {
            Some(Some(value)) => Some(value),
            _ if self.far.is_empty() => None,
            _ => self.far.get_mut(key),
        }
    }

    /// Sets the value of an event.
    pub fn insert(&mut self, key: EventKey, value: T) {
        if let Some(old) = self.get_mut(&key) {
            *old = value;
            return;
        }
        self.count += 1;
        if key.0 >= CLASSES || key.1 >= IDS {
            self.far.insert(key, value);
            return;
        }
        let (class, id) = (key.0 as usize, key.1 as usize);
        if self.classes.len() <= class {
            self.classes.resize_with(class + 1, Vec::new);
        }
        let ids = &mut self.classes[class];
        if ids.len() <= id {
            ids.resize_with(id + 1, || None);
        }
        ids[id] = Some(value);
    }

    /// Returns the value of an event. Inserts the default value first if there is none.
    pub fn get_or_default(&mut self, key: EventKey) -> &mut T
    where
        T: Default,
    {
        if self.get(&key).is_none() {
            self.insert(key, T::default());
        }
        match self.get_mut(&key) {
            Some(value) => value,
            None => unreachable!("it was inserted"),
        }
    }

    /// Returns whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the events with their values.
    pub fn iter(&self) -> impl Iterator<Item = (EventKey, &T)> {
        let near = (0..).zip(&self.classes).flat_map(|(class, ids)| {
            let ids = (0..).zip(ids);
            ids.filter_map(move |(id, value)| Some(((class, id), value.as_ref()?)))
        });
        near.chain(self.far.iter().map(|(key, value)| (*key, value)))
    }

    /// Returns the events.
    pub fn keys(&self) -> impl Iterator<Item = EventKey> + '_ {
        self.iter().map(|(key, _)| key)
    }
}

impl<T> FromIterator<(EventKey, T)> for ByEvent<T> {
    fn from_iter<I: IntoIterator<Item = (EventKey, T)>>(events: I) -> Self {
        let mut this = Self::default();
        for (key, value) in events {
            this.insert(key, value);
        }
        this
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_found() {
        let keys = [
            (0, 0),
            (0, 5),
            (1, 63),
            (0, 70_000),
            (0, 65),
            (3, 1),
            (2, 0),
            (u32::MAX, u32::MAX),
        ];
        let mut map: ByEvent<usize> = keys.into_iter().zip(0..).collect();
        for (key, value) in keys.into_iter().zip(0..) {
            assert_eq!(map.get(&key), Some(&value), "{key:?}");
        }
        for key in [(0, 1), (1, 0), (0, 69_999), (4, 0)] {
            assert_eq!(map.get(&key), None, "{key:?}");
        }
        let mut all: Vec<_> = map.keys().collect();
        all.sort_unstable();
        let mut expected = keys;
        expected.sort_unstable();
        assert_eq!(all, expected);
        *map.get_or_default((0, 5)) += 7;
        *map.get_or_default((0, 6)) += 7;
        assert_eq!((map.get(&(0, 5)), map.get(&(0, 6))), (Some(&8), Some(&7)));
    }
}
