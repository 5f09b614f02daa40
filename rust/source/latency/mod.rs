// SPDX-License-Identifier: GPL-2.0

//! Latencies: how late something happens that was due.
//!
//! Each session measures for itself, while somebody records the event: how long threads that were
//! [woken](wakeup) wait until they run; how long a thread keeps its CPU that was asked to be [preempted](preempt);
//! and how late a [timer](timer) interrupts each CPU, which is as long as interrupts were off. All keep the same
//! [results].

pub(crate) mod metered;
pub(crate) mod preempt;
pub(crate) mod results;
pub(crate) mod timer;
pub(crate) mod wakeup;
mod who;

use super::attached::{AttachedProbes, NewProbe, ProbeList, SessionSources};
use super::{EventSource, FoundSources, FullName};
use crate::abi::schema::Field;
use kernel::error::Result;
use kernel::sync::Arc;

/// The event of a latency.
struct LatencyEvent {
    name: &'static str,
    /// In the order of the record.
    fields: &'static [Field<'static>],
    /// The measuring of the session, which fires it.
    measured: fn(&SessionSources) -> Arc<dyn ProbeList>,
}

/// Finds the events of all latencies.
pub(super) fn find(sources: &mut FoundSources) -> Result {
    sources.add(LatencyEvent {
        name: "wakeup_latency",
        fields: &wakeup::FIELDS,
        measured: |session| session.wakeups.clone(),
    })?;
    sources.add(LatencyEvent {
        name: "preempt_latency",
        fields: &preempt::FIELDS,
        measured: |session| session.preemptions.clone(),
    })?;
    sources.add(LatencyEvent {
        name: "timer_latency",
        fields: &timer::FIELDS,
        measured: |session| session.timers.clone(),
    })
}

impl EventSource for LatencyEvent {
    fn full_name(&self) -> FullName<'_> {
        ("latency", self.name)
    }

    fn field(&self, place: usize) -> Option<Field<'_>> {
        self.fields.get(place).copied()
    }

    fn attach(&self, new: NewProbe<'_>, to: &mut AttachedProbes) -> Result {
        to.in_list((self.measured)(&to.sources), new)
    }

    /// Latencies are measured because a probe records them.
    fn is_asked_for(&self) -> bool {
        true
    }
}

/// Bytes of a task's name.
const COMM: u32 = 16;

/// The bytes of a record with these fields.
const fn len(fields: &[Field<'static>]) -> usize {
    let (mut bytes, mut place) = (0, 0);
    while place < fields.len() {
        bytes += match fields[place].ty.size() {
            Some(size) => size,
            None => panic!("all have a fixed size"),
        };
        place += 1;
    }
    bytes
}
