// SPDX-License-Identifier: GPL-2.0

//! The sources: where events come from. Each event has an [`EventSource`], which has a file or a folder of its own here.
//!
//! [Declared](typed) events have a probe each. [System calls](syscall) have two probes for all of them. An event
//! can have its probe in [another module](external), which can also [provide](provided) events by itself, or write
//! [chunks](aux) of raw bytes. Users [define](dynamic) events. The rest are calls of [functions](function),
//! [samples](sampled) of what runs, [latencies](latency) that are measured, the [state](state) before a trace, and
//! other events of ftrace's, which [perf](perf) hands over.

pub(crate) mod attached;
pub(crate) mod aux;
pub(crate) mod description;
pub(crate) mod dynamic;
pub(crate) mod external;
mod field;
pub(crate) mod function;
pub(crate) mod latency;
pub(crate) mod perf;
pub(crate) mod provided;
pub(crate) mod sampled;
pub(crate) mod state;
mod stopwatch;
mod syscall;
mod typed;

use crate::abi::schema::Field;
use crate::sys::foreign::ForeignModule;
use crate::sys::hotplug::Hotplug;
use crate::sys::perf::Arrivals;
use crate::sys::tracepoint::{Tracepoint, Tracepoints};
use attached::{AttachedProbes, NewProbe};
use core::any::Any;
use description::Description;
use kernel::prelude::*;
use kernel::sync::Arc;

/// A subsystem and a name.
pub(crate) type FullName<'a> = (&'a str, &'a str);

/// Source of an event: its names, its fields, and how a probe is attached to it.
pub(crate) trait EventSource: AsAny + Send + Sync {
    /// Subsystem and name of the event.
    fn full_name(&self) -> FullName<'_>;

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

    /// Whether a pattern must name the event or its subsystem to enable it: recording it causes work beyond
    /// the record, or needs more than a selection.
    fn is_asked_for(&self) -> bool {
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

    /// Whether the event can fire now. That of a module can while the module is loaded. Any context.
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

/// Finders of the events that exist from the beginning, in the order of the events' ids.
const FINDERS: &[fn(&mut FoundSources) -> Result] = &[
    typed::find,
    syscall::find,
    function::find,
    latency::find,
    state::find,
    sampled::find,
];

/// Sources of the events that this kernel has.
pub(crate) struct FoundSources {
    found: KVVec<KBox<dyn EventSource>>,
    tracepoints: Tracepoints,
    /// Notifies samplers of CPUs.
    hotplug: Arc<Hotplug<Arrivals>>,
}

impl FoundSources {
    /// Finds them. Reports each tracepoint that is missing once; its events do not exist. May sleep.
    pub(crate) fn find(hotplug: &Arc<Hotplug<Arrivals>>) -> Result<KVVec<KBox<dyn EventSource>>> {
        let mut sources = Self {
            found: KVVec::new(),
            tracepoints: Tracepoints::new()?,
            hotplug: hotplug.clone(),
        };
        FINDERS.iter().try_for_each(|find| find(&mut sources))?;
        Ok(sources.found)
    }

    fn add(&mut self, source: impl EventSource) -> Result {
        let source = KBox::new(source, GFP_KERNEL)?;
        Ok(self.found.push(source, GFP_KERNEL)?)
    }

    /// Finds the tracepoint `name`; reports if the kernel has none.
    fn tracepoint(&self, name: &str) -> Option<Tracepoint> {
        let tracepoint = self.tracepoints.find(name);
        if tracepoint.is_none() {
            pr_warn!("this kernel has no tracepoint {name}: its events are not available\n");
        }
        tracepoint
    }
}
