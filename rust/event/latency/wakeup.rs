// SPDX-License-Identifier: GPL-2.0

//! Wake-up latency: how long tasks that were woken have to wait until they run.
//!
//! Probes at the scheduler's tracepoints note [who waits](super::waits) and fire the event where the wait is
//! over.

use super::meter::Meter;
use super::results::Results;
use super::{field, COMM};
use crate::abi::schema::{Field, FieldType};
use crate::arch::preempt::NoPreempt;
use crate::event::captured::CapturedProbe;
use crate::event::recorders::Attach;
use crate::event::sampled::Frequency;
use crate::sys::tracepoint::Attachments;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// The event's name.
pub(in crate::event) const NAME: &str = "wakeup_latency";

/// Its fields, in the order of the record.
pub(in crate::event) const FIELDS: [Field<'static>; 13] = [
    // Who had to wait.
    field("comm", FieldType::text(COMM)),
    field("tid", FieldType::signed(32)),
    field("pid", FieldType::signed(32)),
    field("prio", FieldType::signed(32)),
    // Where it runs now.
    field("target_cpu", FieldType::signed(32)),
    // From the wake-up until now, in nanoseconds.
    field("latency", FieldType::unsigned(64)),
    // Who woke it, or was interrupted by an interrupt or a softirq that did.
    field("waker_comm", FieldType::text(COMM)),
    field("waker_tid", FieldType::signed(32)),
    field("waker_cpu", FieldType::signed(32)),
    field("waker_in_interrupt", FieldType::unsigned(8)),
    // Who leaves the CPU for it.
    field("prev_comm", FieldType::text(COMM)),
    field("prev_tid", FieldType::signed(32)),
    field("prev_prio", FieldType::signed(32)),
];

/// The bytes of a record.
pub(super) const LEN: usize = super::len(&FIELDS);

/// The wake-ups that a session measures.
#[pin_data]
pub(crate) struct WakeupLatency {
    results: Arc<Results>,
    /// There is one while somebody records the event.
    #[pin]
    meter: Mutex<Option<Attachments<Meter>>>,
}

impl WakeupLatency {
    /// Nothing was measured, and nobody wants it. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let results = Results::new()?;
        let latency = pin_init!(Self {
            results,
            meter <- new_mutex!(None),
        });
        Arc::pin_init(latency, GFP_KERNEL)
    }

    /// What was measured. `missed`: the slot of a task that was woken was taken.
    pub(crate) fn results(&self) -> &Results {
        &self.results
    }
}

impl Attach for WakeupLatency {
    fn attach(&self, probe: Arc<CapturedProbe>, _frequency: Frequency) -> Result {
        let mut meter = self.meter.lock();
        let recorders = &self.results.recorders;
        recorders.attach(probe.clone())?;
        if meter.is_none() {
            let begun = Meter::begin(&self.results);
            *meter = Some(begun.inspect_err(|_| recorders.detach(&probe))?);
        }
        Ok(())
    }

    fn detach(&self, probe: &CapturedProbe) {
        let mut meter = self.meter.lock();
        self.results.recorders.detach(probe);
        if !self.results.recorders.is_any(&NoPreempt::new()) {
            *meter = None;
        }
    }
}
