// SPDX-License-Identifier: GPL-2.0

//! Numbers of events in a stream of a trace.
//!
//! A trace numbers the events of each channel itself, from 0, in the order in which they are enabled. So most
//! channels can use the compact header, which has room for 31 events. The trace's format calls the number the
//! event's id. The metadata says which event it is.

use crate::abi::header::{Layout, COMPACT_ESCAPE, STACK_ID};
use crate::event::registry::Events;
use crate::event::Event;
use crate::session::programs::MAX_EVENTS;
use crate::session::Selection;
use crate::source::program::ProgramEvent;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The events that were ever enabled in a channel of a trace, each with its number.
pub(in crate::session) struct EventNumbers {
    /// By number. An event stays after its module is unloaded: there may be records of it.
    events: KVVec<Arc<Event>>,
    /// The set of these events.
    known: Selection,
}

impl EventNumbers {
    /// An empty list.
    pub(in crate::session) const NONE: Self = Self {
        events: KVVec::new(),
        known: Selection::NONE,
    };

    /// A copy in which each event in `selection` has a number, whether the event is present or not. [`None`]:
    /// all of them have one already. `ENOSPC`: there are not enough numbers.
    pub(in crate::session) fn with(
        &self,
        events: &Events,
        selection: &Selection,
    ) -> Result<Option<Self>> {
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
        let is_program = |event: &&Arc<Event>| event.source_as::<Arc<ProgramEvent>>().is_some();
        let programs = numbers.events.iter().filter(is_program).count();
        if numbers.events.len() > STACK_ID as usize || programs > MAX_EVENTS {
            return Err(ENOSPC);
        }
        Ok(Some(numbers))
    }

    /// The event with this number.
    pub(in crate::session) fn event(&self, number: u32) -> Option<&Event> {
        self.events.get(number as usize).map(|event| &**event)
    }

    /// The events with their numbers, in ascending order.
    pub(in crate::session) fn iter(&self) -> impl Iterator<Item = (&Arc<Event>, u32)> {
        self.events.iter().zip(0..)
    }

    /// The header that has room for all numbers.
    pub(in crate::session) fn layout(&self) -> Layout {
        if self.events.len() <= COMPACT_ESCAPE as usize {
            Layout::Compact
        } else {
            Layout::Large
        }
    }
}
