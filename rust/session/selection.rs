// SPDX-License-Identifier: GPL-2.0

//! A set of events.

use crate::event::Event;
use crate::sys::debugfs::text::Text;
use core::fmt::Write;
use kernel::prelude::*;

/// A set of events, by id.
pub(crate) struct Selection(KVec<u64>);

impl Selection {
    /// No event.
    pub(super) const NONE: Self = Self(KVec::new());

    /// The same.
    pub(super) fn try_clone(&self) -> Result<Self> {
        let mut words = KVec::new();
        words.extend_from_slice(&self.0, GFP_KERNEL)?;
        Ok(Self(words))
    }

    /// Whether `event` is in it.
    pub(crate) fn has(&self, event: &Event) -> bool {
        self.has_id(event.id())
    }

    /// Whether the event with this id is in it.
    pub(super) fn has_id(&self, id: u32) -> bool {
        self.0
            .get(id as usize / 64)
            .is_some_and(|word| word & 1 << (id % 64) != 0)
    }

    /// Puts `event` in or out.
    pub(super) fn set(&mut self, event: &Event, member: bool) -> Result {
        let (word, bit) = (event.id() as usize / 64, 1 << (event.id() % 64));
        while member && self.0.len() <= word {
            self.0.push(0, GFP_KERNEL)?;
        }
        if let Some(word) = self.0.get_mut(word) {
            *word = if member { *word | bit } else { *word & !bit };
        }
        Ok(())
    }

    /// Puts all out that are not in `other`.
    pub(super) fn keep(&mut self, other: &Self) {
        for (at, word) in self.0.iter_mut().enumerate() {
            *word &= other.0.get(at).copied().unwrap_or(0);
        }
    }

    /// Puts all out that are in `other`.
    pub(super) fn remove(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= !other;
        }
    }

    /// How many events are in it.
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no event is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }
}

impl PartialEq for Selection {
    fn eq(&self, other: &Self) -> bool {
        let word = |set: &Self, at: usize| set.0.get(at).copied().unwrap_or(0);
        (0..self.0.len().max(other.0.len())).all(|at| word(self, at) == word(other, at))
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
