// SPDX-License-Identifier: GPL-2.0

//! The events of a stream class by id.

use crate::metadata::EventLayout;
use std::collections::HashMap;
use std::ops::Index;

/// Ids below this number have an entry in the index, for any number of events.
const FIRST_IDS: usize = 64;

/// The events of a stream class. The module numbers them from 0 on, so an index finds them; an id far beyond
/// their number is in a map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventLayouts {
    /// In the order of the description.
    all: Vec<EventLayout>,
    /// By id: an index in `all`, or [`NONE`].
    index: Vec<u32>,
    /// The indices of the other ids.
    far: HashMap<u32, u32>,
}

/// No index.
const NONE: u32 = u32::MAX;

impl EventLayouts {
    /// Number of events.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is no event.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The event with this id.
    pub fn get(&self, id: &u32) -> Option<&EventLayout> {
        self.at(self.place(*id)?)
    }

    /// All events, in the order of the description.
    pub fn values(&self) -> impl Iterator<Item = &EventLayout> + Clone {
        self.all.iter()
    }

    /// Adds an event. Returns false if there is one with its id.
    pub(super) fn insert(&mut self, event: EventLayout) -> bool {
        let (id, place) = (event.id, self.all.len() as u32);
        if self.place(id).is_some() {
            return false;
        }
        // The size of the index is at most a multiple of the number of events.
        let reach = FIRST_IDS + 4 * self.all.len();
        match usize::try_from(id) {
            Ok(id) if id < reach => {
                if self.index.len() <= id {
                    self.index.resize(id + 1, NONE);
                }
                self.index[id] = place;
            }
            _ => {
                self.far.insert(id, place);
            }
        }
        self.all.push(event);
        true
    }

    /// The index of an id, for [`Self::at`].
    pub(super) fn place(&self, id: u32) -> Option<u32> {
        match self.index.get(id as usize) {
            Some(&place) if place != NONE => Some(place),
            _ if self.far.is_empty() => None,
            _ => self.far.get(&id).copied(),
        }
    }

    /// The event with this index.
    pub(super) fn at(&self, place: u32) -> Option<&EventLayout> {
        self.all.get(place as usize)
    }
}

impl Index<&u32> for EventLayouts {
    type Output = EventLayout;

    /// The event with this id, which must be there.
    fn index(&self, id: &u32) -> &EventLayout {
        self.get(id).expect("an event with this id")
    }
}
