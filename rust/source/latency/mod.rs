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

use super::FoundSources;
use kernel::error::Result;
use metered::LatencyEvent;
use preempt::PreemptMeter;
use timer::TimerMeter;
use wakeup::WakeupMeter;

/// Finds the events of all latencies.
pub(super) fn find(sources: &mut FoundSources) -> Result {
    sources.add(LatencyEvent::<WakeupMeter>::new())?;
    sources.add(LatencyEvent::<PreemptMeter>::new())?;
    sources.add(LatencyEvent::<TimerMeter>::new())
}
