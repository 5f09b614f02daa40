// SPDX-License-Identifier: GPL-2.0

//! Table of the handlers of a module, and of the events that were made of them.

use super::ModuleProbes;
use crate::event::registry::Registry;
use crate::event::Event;
use crate::source::external::External;
use crate::source::FullName;
use crate::sys::module_tracepoint::ModuleTracepoint;
use crate::sys::modules::ModuleId;
use crate::sys::sort::sort_by;
use crate::sys::tracepoint::AttachPoint;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Probes, and the events that were created from them.
pub(super) struct AwaitedTable {
    /// [`None`] after they were removed.
    probes: Option<KBox<dyn ModuleProbes>>,
    /// The probes' indices, sorted by the names of the tracepoints.
    sorted: KVVec<u32>,
    /// By index: the event that was created.
    events: KVVec<Option<Made>>,
    /// Whether an event was created since the last [`take_new`](Self::take_new).
    has_new: bool,
    /// Tracepoints that have the name of a probe's tracepoint, and are different ones.
    mismatches: KVVec<Mismatch>,
}

/// A tracepoint that has the name of a probe's tracepoint, and is a different one.
struct Mismatch {
    /// Place of the probe in its table.
    place: u32,
    module: ModuleId,
}

/// An event that was created.
pub(super) struct Made {
    pub(super) event: Arc<Event>,
    pub(super) tracepoint: Arc<ModuleTracepoint>,
    /// Whether it has files.
    is_shown: bool,
}

impl AwaitedTable {
    /// Without events.
    pub(super) fn new(probes: KBox<dyn ModuleProbes>) -> Result<Self> {
        let count = probes.count();
        let mut sorted = KVVec::with_capacity(count, GFP_KERNEL)?;
        let mut events = KVVec::with_capacity(count, GFP_KERNEL)?;
        for place in 0..count {
            sorted.push(place as u32, GFP_KERNEL)?;
            events.push(None, GFP_KERNEL)?;
        }
        sort_by(&mut sorted, |&one, &other| {
            tracepoint_of(&*probes, one).cmp(tracepoint_of(&*probes, other))
        });
        Ok(Self {
            probes: Some(probes),
            sorted,
            events,
            has_new: false,
            mismatches: KVVec::new(),
        })
    }

    /// The indices of the probes for a tracepoint. There are several if events of several subsystems have its
    /// name.
    pub(super) fn places(&self, tracepoint: &[u8]) -> &[u32] {
        let Some(probes) = &self.probes else {
            return &[];
        };
        let name = |place: &u32| tracepoint_of(&**probes, *place).as_bytes();
        let begin = self
            .sorted
            .partition_point(|place| name(place) < tracepoint);
        let rest = self.sorted.get(begin..).unwrap_or(&[]);
        let count = rest.partition_point(|place| name(place) == tracepoint);
        rest.get(..count).unwrap_or(&[])
    }

    /// The event that was created from the probe at this index.
    pub(super) fn made(&self, place: u32) -> Option<&Made> {
        self.events.get(place as usize)?.as_ref()
    }

    /// Creates the missing events of the probes at these indices.
    pub(super) fn make(&mut self, places: &[u32], registry: &Registry) -> Result {
        let Some(probes) = &self.probes else {
            return Ok(());
        };
        let (mut externals, mut of) = (KVVec::new(), KVVec::new());
        for &place in places {
            if self.made(place).is_some() {
                continue;
            }
            let (description, handler) = match probes.read(place as usize) {
                Err(EINVAL) => {
                    let (subsystem, name) = probes.name(place as usize);
                    pr_err!("{subsystem}:{name} is no event, because its description is wrong\n");
                    continue;
                }
                read => read?,
            };
            let tracepoint = ModuleTracepoint::new()?;
            of.push((place, tracepoint.clone()), GFP_KERNEL)?;
            let event = External {
                description,
                tracepoint: AttachPoint::Module(tracepoint),
                handler,
            };
            externals.push(event, GFP_KERNEL)?;
        }
        if externals.is_empty() {
            return Ok(());
        }
        for (event, (place, tracepoint)) in registry.add_external(externals)?.into_iter().zip(of) {
            // Another event has this name.
            let Some(event) = event else {
                continue;
            };
            if let Some(known) = self.events.get_mut(place as usize) {
                *known = Some(Made {
                    event,
                    tracepoint,
                    is_shown: false,
                });
                self.has_new = true;
            }
        }
        Ok(())
    }

    /// The probes; [`None`] after they were removed.
    pub(super) fn probes(&self) -> Option<&dyn ModuleProbes> {
        self.probes.as_deref()
    }

    /// All events that were created.
    pub(super) fn events(&self) -> impl Iterator<Item = &Made> {
        self.events.iter().flatten()
    }

    /// Whether this name means the event of the probe at this index: the event exists, and there is no
    /// mismatch.
    pub(super) fn is_own(&self, place: u32, name: FullName<'_>) -> bool {
        let mut mismatches = self.mismatches.iter();
        let made = self.made(place);
        made.is_some_and(|made| made.event.full_name() == name)
            && !mismatches.any(|mismatch| mismatch.place == place)
    }

    /// Notes that the module has a different tracepoint with the name of this probe's.
    pub(super) fn add_mismatch(&mut self, place: u32, module: ModuleId) -> Result {
        Ok(self
            .mismatches
            .push(Mismatch { place, module }, GFP_KERNEL)?)
    }

    /// Removes the mismatches of a module.
    pub(super) fn forget_mismatches(&mut self, module: ModuleId) {
        self.mismatches.retain(|mismatch| mismatch.module != module);
    }

    /// The next event that has appeared or disappeared since the last call.
    pub(super) fn next_change(&mut self) -> Option<Arc<Event>> {
        let mut made = self.events.iter_mut().flatten();
        let made = made.find(|made| made.tracepoint.is_there() != made.is_shown)?;
        made.is_shown = !made.is_shown;
        Some(made.event.clone())
    }

    /// Whether events were created since the previous call.
    pub(super) fn take_new(&mut self) -> bool {
        core::mem::take(&mut self.has_new)
    }

    /// Removes the probes. Returns the events that were created from them.
    pub(super) fn give_back(&mut self) -> KVVec<Option<Made>> {
        self.probes = None;
        core::mem::take(&mut self.events)
    }
}

fn tracepoint_of(probes: &dyn ModuleProbes, place: u32) -> &str {
    probes.name(place as usize).1
}
