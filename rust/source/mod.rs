// SPDX-License-Identifier: GPL-2.0

//! The sources: the origins of events. Each event has an [`EventSource`]. Each kind of source has a file or a
//! folder here.
//!
//! Each [declared](typed) event has its own probe. All [system calls](syscall) share two probes. The probe of
//! an event can be in [another module](external); another module can also [provide](provided) events by itself,
//! or write [chunks](aux) of raw bytes. [Programs](program) record events of their own. Users [define](dynamic) events. The other events are calls of
//! [functions](function), [samples](sampled) of the code that runs, measured [latencies](latency), the
//! [state](state) before a trace, and other events of ftrace's, which [perf](perf) hands over.

pub(crate) mod attached;
pub(crate) mod aux;
pub(crate) mod description;
pub(crate) mod dynamic;
mod event_source;
pub(crate) mod external;
mod field;
mod frequency;
pub(crate) mod function;
pub(crate) mod latency;
pub(crate) mod perf;
pub(crate) mod probe_list;
pub(crate) mod program;
pub(crate) mod provided;
pub(crate) mod rings;
pub(crate) mod sampled;
pub(crate) mod session;
pub(crate) mod state;
mod syscall;
mod typed;
pub(crate) mod values;

use crate::sys::hotplug::Hotplug;
use crate::sys::perf::Arrivals;
pub(crate) use description::FullName;
pub(crate) use event_source::EventSource;
use event_source::FoundSources;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Finders of the events that exist from the beginning, in the order of the events' ids.
const FINDERS: &[fn(&mut FoundSources) -> Result] = &[
    typed::find,
    syscall::event::find,
    function::event::find,
    latency::find,
    state::find,
    sampled::find,
];

/// Finds the sources of the events that this kernel has; `hotplug` notifies samplers of CPUs. Reports each tracepoint
/// that is missing once; its events do not exist. May sleep.
pub(crate) fn find(hotplug: &Arc<Hotplug<Arrivals>>) -> Result<KVVec<KBox<dyn EventSource>>> {
    let mut sources = FoundSources::new(hotplug)?;
    FINDERS.iter().try_for_each(|find| find(&mut sources))?;
    Ok(sources.into_all())
}
