// SPDX-License-Identifier: GPL-2.0

//! Which tracepoints this kernel has.

use crate::event::{self, Event, Kind};
use crate::sys::tracepoint::Tracepoint;
use kernel::prelude::*;

/// The tracepoint of each event, looked up once when the module is loaded.
pub(crate) struct Tracepoints(KVec<Option<Tracepoint>>);

impl Tracepoints {
    /// Looks them up. An event whose tracepoint is missing is said once, and is not available.
    pub(crate) fn new() -> Result<Self> {
        let mut found = KVec::from_elem(None, event::count() as usize, GFP_KERNEL)?;
        let mut last: Option<(&'static str, Option<Tracepoint>)> = None;
        for event in event::all() {
            let Some(name) = event.tracepoint() else {
                continue;
            };
            // All system calls have one of two.
            let tracepoint = match last {
                Some((same, tracepoint)) if same == name => tracepoint,
                _ => Tracepoint::find(name),
            };
            if tracepoint.is_none() && last.map(|(name, _)| name) != Some(name) {
                pr_warn!(
                    "this kernel has no tracepoint {name}: event {} is not available\n",
                    event.name()
                );
            }
            last = Some((name, tracepoint));
            if let Some(place) = found.get_mut(event.id() as usize) {
                *place = tracepoint;
            }
        }
        Ok(Self(found))
    }

    /// That of event `id`.
    pub(super) fn get(&self, id: u32) -> Option<Tracepoint> {
        self.0.get(id as usize).copied().flatten()
    }

    /// Whether the event can be recorded on this kernel.
    pub(super) fn has(&self, event: &Event) -> bool {
        match event.kind() {
            Kind::Provided(provided) => provided.is_registered(),
            _ => self.get(event.id()).is_some(),
        }
    }
}
