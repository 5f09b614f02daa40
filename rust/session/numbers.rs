// SPDX-License-Identifier: GPL-2.0

//! The numbers that events have in a trace.
//!
//! A trace numbers its events itself, from 0, as they are enabled: so most traces get by with
//! the compact header, which has room for 31. The trace's format calls the number the event's
//! id; the metadata tells which event it is.

use super::Selection;
use crate::abi::header::{Layout, COMPACT_ESCAPE};
use crate::event;
use kernel::prelude::*;

/// The events that were enabled in a trace at some time, each with its number.
pub(super) struct Numbers {
    /// By event id.
    numbers: KVec<Option<u32>>,
    /// The next event's.
    next: u32,
}

impl Numbers {
    /// Numbers the events in `selection`.
    pub(super) fn new(selection: &Selection) -> Result<Self> {
        let mut numbers = Self {
            numbers: KVec::from_elem(None, event::count() as usize, GFP_KERNEL)?,
            next: 0,
        };
        numbers.add(selection);
        Ok(numbers)
    }

    /// The same.
    pub(super) fn try_clone(&self) -> Result<Self> {
        let mut numbers = KVec::new();
        numbers.extend_from_slice(&self.numbers, GFP_KERNEL)?;
        Ok(Self { numbers, ..*self })
    }

    /// Numbers those in `selection` that have no number yet. Returns whether there were any.
    pub(super) fn add(&mut self, selection: &Selection) -> bool {
        let before = self.next;
        for (number, id) in self.numbers.iter_mut().zip(0..) {
            if number.is_none() && selection.has(id) {
                *number = Some(self.next);
                self.next += 1;
            }
        }
        self.next != before
    }

    /// The number of event `id`.
    pub(super) fn get(&self, id: u32) -> Option<u32> {
        *self.numbers.get(id as usize)?
    }

    /// The ids, ascending, with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (0..)
            .zip(&self.numbers)
            .filter_map(|(id, number)| Some((id, (*number)?)))
    }

    /// The header in which all of them fit.
    pub(super) fn layout(&self) -> Layout {
        if self.next <= COMPACT_ESCAPE {
            Layout::Compact
        } else {
            Layout::Large
        }
    }
}
