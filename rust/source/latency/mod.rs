// SPDX-License-Identifier: GPL-2.0

//! Latencies: the delays between the time something is due and the time it happens.
//!
//! Each session measures latencies for itself while somebody records their events: how long [woken and preempted
//! threads](wakeup) wait until they run; how long a thread keeps its CPU after it was asked to be
//! [preempted](preempt); and how late a [timer](timer) interrupts each CPU, which shows how long interrupts were off.
//! All latencies keep the same kind of [results].

pub(crate) mod metered;
pub(crate) mod preempt;
pub(crate) mod results;
pub(crate) mod timer;
pub(crate) mod wakeup;
mod who;

use super::attached::AttachedProbes;
use super::description::FullName;
use super::event_source::{EventSource, FoundSources};
use super::probe_list::{NewProbe, ProbeList};
use super::session::SessionSources;
use crate::abi::schema::Field;
use kernel::error::Result;
use kernel::sync::Arc;
use metered::{Meter, Metered};

/// The event of a latency.
struct LatencyEvent<M: Meter> {
    /// Returns the latency of a session.
    of: fn(&SessionSources) -> &Arc<Metered<M>>,
}

/// Finds the events of all latencies that this kernel's tracepoints can measure.
pub(super) fn find(sources: &mut FoundSources) -> Result {
    sources.add(LatencyEvent {
        of: |session| &session.wakeups,
    })?;
    let has = |name: &&str| sources.tracepoint(name).is_some();
    if preempt::TRACEPOINTS.iter().all(has) {
        sources.add(LatencyEvent {
            of: |session| &session.preemptions,
        })?;
    }
    sources.add(LatencyEvent {
        of: |session| &session.timers,
    })
}

impl<M: Meter> EventSource for LatencyEvent<M> {
    fn full_name(&self) -> FullName<'_> {
        ("latency", M::NAME)
    }

    fn field(&self, place: usize) -> Option<Field<'_>> {
        M::FIELDS.get(place).copied()
    }

    fn attach(&self, new: NewProbe<'_>, to: &mut AttachedProbes) -> Result {
        let list: Arc<dyn ProbeList> = (self.of)(&to.sources).clone();
        to.in_list(list, new)
    }

    /// Latencies are measured only because a probe records them.
    fn is_explicit(&self) -> bool {
        true
    }
}
