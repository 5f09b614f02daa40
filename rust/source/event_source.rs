// SPDX-License-Identifier: GPL-2.0

//! `EventSource`, the trait that every source of events implements.

use super::attached::AttachedProbes;
use super::description::{Description, FullName};
use super::probe_list::NewProbe;
use crate::abi::schema::Field;
use crate::sys::foreign::ForeignModule;
use crate::sys::hotplug::Hotplug;
use crate::sys::perf::Arrivals;
use crate::sys::tracepoint::{Tracepoint, Tracepoints};
use core::any::Any;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Source of an event: its names, its fields, and how a probe is attached to it.
pub(crate) trait EventSource: AsAny + Send + Sync {
    /// Subsystem and name of the event.
    fn full_name(&self) -> FullName<'_>;

    /// Name of the event in traces.
    fn trace_name(&self) -> &str {
        self.full_name().1
    }

    /// Field at this place in the record.
    fn field(&self, place: usize) -> Option<Field<'_>>;

    /// Attaches a probe: at a tracepoint, or in a list that the source keeps. May sleep.
    fn attach(&self, new: NewProbe<'_>, to: &mut AttachedProbes) -> Result;

    /// Other names by which patterns pick the event: those that ftrace and perf have for it.
    fn aliases(&self) -> [Option<FullName<'_>>; 2] {
        [None; 2]
    }

    /// Whether the event is recorded when the user selects nothing.
    fn is_default(&self) -> bool {
        false
    }

    /// Whether a channel can take the event from the rings of programs.
    fn has_rings(&self) -> bool {
        false
    }

    /// Whether a pattern must name the event or its subsystem to enable it: recording it causes work beyond
    /// the record, or needs more than a selection.
    fn is_explicit(&self) -> bool {
        false
    }

    /// Whether the event is about the whole system, so that it is recorded whatever tasks are selected.
    fn is_of_all_tasks(&self) -> bool {
        false
    }

    /// Whether a filter can look at the records.
    fn can_be_filtered(&self) -> bool {
        true
    }

    /// Whether selecting the event takes the privilege to probe the kernel.
    fn is_privileged(&self) -> bool {
        false
    }

    /// Whether the event can fire now. An event of a module can while the module is loaded. Any context.
    fn can_fire(&self) -> bool {
        true
    }

    /// Whether the origin of the event still exists, where the kernel does not notify of its end. `ENOMEM`: unknown.
    /// May sleep.
    fn is_there(&self) -> Result<bool> {
        Ok(true)
    }

    /// Whether the handler of the event is in this module.
    fn is_of(&self, _owner: ForeignModule) -> bool {
        false
    }

    /// Whether an event that has a probe, and this description, can replace this one. Any context.
    fn gives_way_to(&self, _other: &Description) -> bool {
        false
    }

    /// Whether this is the event that `old` was before its origin went.
    fn is_again(&self, _old: &Self) -> bool
    where
        Self: Sized,
    {
        false
    }
}

/// A value whose type can be found out.
pub(crate) trait AsAny: Any {
    /// Returns the value as one of any type.
    fn as_any(&self) -> &dyn Any;
}

impl<T: Any> AsAny for T {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Sources of the events that this kernel has.
pub(crate) struct FoundSources {
    found: KVVec<KBox<dyn EventSource>>,
    tracepoints: Tracepoints,
    /// Notifies samplers of CPUs.
    pub(super) hotplug: Arc<Hotplug<Arrivals>>,
}

impl FoundSources {
    /// Makes an empty collection. May sleep.
    pub(super) fn new(hotplug: &Arc<Hotplug<Arrivals>>) -> Result<Self> {
        Ok(Self {
            found: KVVec::new(),
            tracepoints: Tracepoints::new()?,
            hotplug: hotplug.clone(),
        })
    }

    /// Returns all sources that were added.
    pub(super) fn into_all(self) -> KVVec<KBox<dyn EventSource>> {
        self.found
    }

    /// Adds a source.
    pub(super) fn add(&mut self, source: impl EventSource) -> Result {
        let source = KBox::new(source, GFP_KERNEL)?;
        Ok(self.found.push(source, GFP_KERNEL)?)
    }

    /// Finds the tracepoint `name`; reports if the kernel has none.
    pub(super) fn tracepoint(&self, name: &str) -> Option<Tracepoint> {
        let tracepoint = self.tracepoints.find(name);
        if tracepoint.is_none() {
            pr_warn!("this kernel has no tracepoint {name}: its events are not available\n");
        }
        tracepoint
    }
}
