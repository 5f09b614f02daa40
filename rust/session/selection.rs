// SPDX-License-Identifier: GPL-2.0

//! A set of events.

use crate::event::{Event, Id};
use crate::sys::debugfs::text::Text;
use core::fmt::Write;
use kernel::prelude::*;
use kernel::sync::Arc;

/// A set of events, by id; the ids stay in use. In ascending order.
pub(crate) struct Selection(KVVec<Arc<Id>>);

impl Selection {
    /// No event.
    pub(super) const NONE: Self = Self(KVVec::new());

    /// The same.
    pub(super) fn try_clone(&self) -> Result<Self> {
        let mut ids = KVVec::new();
        ids.extend_from_slice(&self.0, GFP_KERNEL)?;
        Ok(Self(ids))
    }

    /// Whether `event` is in it.
    pub(crate) fn has(&self, event: &Event) -> bool {
        self.has_id(event.id())
    }

    /// Whether the event with this id is in it.
    pub(super) fn has_id(&self, id: u32) -> bool {
        self.position(id).is_ok()
    }

    /// Where an id is, or would be.
    fn position(&self, id: u32) -> Result<usize, usize> {
        self.0.binary_search_by_key(&id, |id| id.number())
    }

    /// Puts `event` in or out.
    pub(super) fn set(&mut self, event: &Event, member: bool) -> Result {
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

    /// Puts all out that are not in `other`.
    pub(super) fn keep(&mut self, other: &Self) {
        self.0.retain(|id| other.has_id(id.number()));
    }

    /// How many events are in it.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no event is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl PartialEq for Selection {
    fn eq(&self, other: &Self) -> bool {
        let number = |id: &Arc<Id>| id.number();
        self.0.iter().map(number).eq(other.0.iter().map(number))
    }
}

/// Whether none, some or all of some events are enabled: what `enable` files show.
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
    /// Writes it as a line.
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
