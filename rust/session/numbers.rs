// SPDX-License-Identifier: GPL-2.0

//! The numbers that events have in a stream of a trace.
//!
//! A trace numbers the events of each channel itself, from 0, as they are enabled: so most get by
//! with the compact header, which has room for 31. The trace's format calls the number the
//! event's id; the metadata tells which event it is.

use super::Selection;
use crate::abi::header::{Layout, COMPACT_ESCAPE, STACK_ID};
use crate::event::registry::Events;
use crate::event::Event;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The events that were enabled in a channel of a trace at some time, each with its number.
pub(super) struct EventNumbers {
    /// By number. They stay when their module goes: there may be records of them.
    events: KVVec<Arc<Event>>,
    /// Which these are.
    known: Selection,
}

impl EventNumbers {
    /// None yet.
    pub(super) const NONE: Self = Self {
        events: KVVec::new(),
        known: Selection::NONE,
    };

    /// With numbers also for those in `selection` that have none yet, be they there or awaited. [`None`]: all have
    /// one.
    /// `ENOSPC`: there are not so many numbers.
    pub(super) fn with(&self, events: &Events, selection: &Selection) -> Result<Option<Self>> {
        let is_new = |event: &&Arc<Event>| selection.has(event) && !self.known.has(event);
        let mut new = events.known().filter(is_new).peekable();
        if new.peek().is_none() {
            return Ok(None);
        }
        let mut numbers = Self {
            events: KVVec::with_capacity(self.events.len(), GFP_KERNEL)?,
            known: self.known.try_clone()?,
        };
        for event in Iterator::chain(self.events.iter(), new) {
            numbers.events.push(event.clone(), GFP_KERNEL)?;
            numbers.known.set(event, true)?;
        }
        if numbers.events.len() > STACK_ID as usize {
            return Err(ENOSPC);
        }
        Ok(Some(numbers))
    }

    /// The event that has this number.
    pub(super) fn event(&self, number: u32) -> Option<&Event> {
        self.events.get(number as usize).map(|event| &**event)
    }

    /// The events, each with its number, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<Event>, u32)> {
        self.events.iter().zip(0..)
    }

    /// The header in which all of them fit.
    pub(super) fn layout(&self) -> Layout {
        if self.events.len() <= COMPACT_ESCAPE as usize {
            Layout::Compact
        } else {
            Layout::Large
        }
    }
}
