// SPDX-License-Identifier: GPL-2.0

//! A set of events.

use crate::sys::debugfs::text::Text;
use core::fmt::Write;
use kernel::prelude::*;

/// A set of events, by id.
#[derive(PartialEq, Eq)]
pub(crate) struct Selection(KVec<u64>);

impl Selection {
    /// No event, and none can be put in.
    pub(super) const NONE: Self = Self(KVec::new());

    /// None of `count` events.
    pub(super) fn new(count: u32) -> Result<Self> {
        let words = (count as usize).div_ceil(64);
        Ok(Self(KVec::from_elem(0, words, GFP_KERNEL)?))
    }

    /// The same.
    pub(super) fn try_clone(&self) -> Result<Self> {
        let mut words = KVec::new();
        words.extend_from_slice(&self.0, GFP_KERNEL)?;
        Ok(Self(words))
    }

    /// Whether event `id` is in it.
    pub(crate) fn has(&self, id: u32) -> bool {
        self.0
            .get(id as usize / 64)
            .is_some_and(|word| word & 1 << (id % 64) != 0)
    }

    /// Puts event `id` in or out.
    pub(super) fn set(&mut self, id: u32, member: bool) {
        if let Some(word) = self.0.get_mut(id as usize / 64) {
            let bit = 1 << (id % 64);
            *word = if member { *word | bit } else { *word & !bit };
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
