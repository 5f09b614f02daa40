// SPDX-License-Identifier: GPL-2.0

//! The sources that each session has for itself.

use super::function::Functions;
use super::latency::preempt::{PreemptChoice, PreemptLatency};
use super::latency::timer::{TimerChoice, TimerLatency, Timers};
use super::latency::wakeup::WakeupLatency;
use crate::sys::hotplug::Hotplug;
use kernel::error::Result;
use kernel::sync::Arc;

/// Sources that each session has for itself: their events are fired for this session only.
#[derive(Clone)]
pub(crate) struct SessionSources {
    /// The functions that it traces.
    pub(crate) functions: Arc<Functions>,
    /// The wake-ups that it measures.
    pub(crate) wakeups: Arc<WakeupLatency>,
    /// The preemptions that it measures.
    pub(crate) preemptions: Arc<PreemptLatency>,
    /// Its timers, whose lateness it measures.
    pub(crate) timers: Arc<TimerLatency>,
}

impl SessionSources {
    /// Makes sources that trace and measure nothing yet. May sleep.
    pub(crate) fn new(timer_hotplug: &Arc<Hotplug<Timers>>) -> Result<Self> {
        Ok(Self {
            functions: Functions::new()?,
            wakeups: WakeupLatency::new(())?,
            preemptions: PreemptLatency::new(PreemptChoice::new())?,
            timers: TimerLatency::new(TimerChoice::new(timer_hotplug))?,
        })
    }
}
