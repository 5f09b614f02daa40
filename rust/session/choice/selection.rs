// SPDX-License-Identifier: GPL-2.0

//! A set of events.

use crate::event::{Event, Id};
use crate::sys::debugfs::text::Text;
use core::fmt::Write;
use kernel::prelude::*;
use kernel::sync::Arc;

/// A set of events, by id, in ascending order. Their ids stay in use.
pub(crate) struct Selection(KVVec<Arc<Id>>);

impl Selection {
    /// No event.
    pub(in crate::session) const NONE: Self = Self(KVVec::new());

    /// A copy.
    pub(in crate::session) fn try_clone(&self) -> Result<Self> {
        let mut ids = KVVec::new();
        ids.extend_from_slice(&self.0, GFP_KERNEL)?;
        Ok(Self(ids))
    }

    /// Whether the set has `event`.
    pub(crate) fn has(&self, event: &Event) -> bool {
        self.has_id(event.id())
    }

    /// Whether the set has the event with this id.
    pub(in crate::session) fn has_id(&self, id: u32) -> bool {
        self.position(id).is_ok()
    }

    /// Index of an id, or the index where it would be inserted.
    fn position(&self, id: u32) -> Result<usize, usize> {
        self.0.binary_search_by_key(&id, |id| id.number())
    }

    /// Adds or removes `event`.
    pub(in crate::session) fn set(&mut self, event: &Event, member: bool) -> Result {
        match (self.position(event.id()), member) {
            (Err(at), true) => {
                self.0.reserve(1, GFP_KERNEL)?;
                let inserted = self.0.insert_within_capacity(at, event.shared_id().clone());
                inserted.map_err(|_| ENOMEM)?;
            }
            (Ok(at), false) => {
                let _ = self.0.remove(at);
            }
            _ => {}
        }
        Ok(())
    }

    /// Removes all events that are not in `other`.
    pub(in crate::session) fn keep(&mut self, other: &Self) {
        self.0.retain(|id| other.has_id(id.number()));
    }

    /// Number of events in the set.
    pub(in crate::session) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set is empty.
    pub(in crate::session) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl PartialEq for Selection {
    fn eq(&self, other: &Self) -> bool {
        let number = |id: &Arc<Id>| id.number();
        self.0.iter().map(number).eq(other.0.iter().map(number))
    }
}

/// Whether none, some or all of some events are enabled, as `enable` files show it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Enabled {
    /// `0`
    None,
    /// `X`
    Some,
    /// `1`
    All,
}

impl Enabled {
    /// Writes the value as a line.
    pub(crate) fn write(self, out: &mut Text) -> core::fmt::Result {
        out.write_str(match self {
            Self::None => "0\n",
            Self::Some => "X\n",
            Self::All => "1\n",
        })
    }
}

impl FromIterator<bool> for Enabled {
    fn from_iter<I: IntoIterator<Item = bool>>(each: I) -> Self {
        let (mut on, mut off) = (false, false);
        for enabled in each {
            on |= enabled;
            off |= !enabled;
        }
        match (on, off) {
            (true, true) => Self::Some,
            (true, false) => Self::All,
            (false, _) => Self::None,
        }
    }
}
