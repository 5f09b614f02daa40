// SPDX-License-Identifier: GPL-2.0

//! Latency: how long tasks that were woken have to wait until they run.
//!
//! Each session measures for itself, while somebody records its event: probes at the scheduler's
//! tracepoints note [who waits](waits) and fire the event where the wait is over. The longest one is kept.

mod meter;
mod waits;

use super::captured::CapturedProbe;
use super::recorders::{Attach, Recorders};
use super::sampled::Frequency;
use crate::abi::schema::{Field, FieldType};
use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::sys::cpu;
use crate::sys::percpu::PerCpu;
use crate::sys::tracepoint::Attachments;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};
use meter::Meter;

/// The event's subsystem.
pub(super) const SUBSYSTEM: &str = "latency";

/// Its name.
pub(super) const NAME: &str = "wakeup_latency";

/// Bytes of a task's name.
const COMM: u32 = 16;

/// Its fields, in the order of the record.
pub(super) const FIELDS: [Field<'static>; 13] = [
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
const LEN: usize = {
    let (mut bytes, mut place) = (0, 0);
    while place < FIELDS.len() {
        bytes += match FIELDS[place].ty.size() {
            Some(size) => size,
            None => panic!("all have a fixed size"),
        };
        place += 1;
    }
    bytes
};

const fn field(name: &'static str, ty: FieldType<'static>) -> Field<'static> {
    Field { name, ty }
}

/// The wake-ups that a session measures.
#[pin_data]
pub(crate) struct WakeupLatency {
    results: Arc<Results>,
    /// There is one while somebody records the event.
    #[pin]
    meter: Mutex<Option<Attachments<Meter>>>,
}

/// Who records the event, and what was measured so far.
#[pin_data]
struct Results {
    #[pin]
    recorders: Recorders,
    /// The longest wait, in nanoseconds.
    max: SharedWord,
    /// Shorter ones are no event.
    threshold: SharedWord,
    /// How often a wait was over, by the CPU on which it was.
    measured: PerCpu<SharedWord>,
    /// How many wake-ups were not noted.
    missed: SharedWord,
}

impl WakeupLatency {
    /// Nothing was measured, and nobody wants it. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let measured = PerCpu::new(|| SharedWord::new(0))?;
        let results = Arc::pin_init(
            pin_init!(Results {
                recorders <- Recorders::new(),
                max: SharedWord::new(0),
                threshold: SharedWord::new(0),
                measured,
                missed: SharedWord::new(0),
            }),
            GFP_KERNEL,
        )?;
        let latency = pin_init!(Self {
            results,
            meter <- new_mutex!(None),
        });
        Arc::pin_init(latency, GFP_KERNEL)
    }

    /// The longest wait so far, or since [`set_max`](Self::set_max), in nanoseconds.
    pub(crate) fn max(&self) -> u64 {
        self.results.max.load()
    }

    /// Has it begin anew from here.
    pub(crate) fn set_max(&self, ns: u64) {
        self.results.max.store(ns);
    }

    /// Shorter waits than this, in nanoseconds, are no event.
    pub(crate) fn threshold(&self) -> u64 {
        self.results.threshold.load()
    }

    /// Has it be another one.
    pub(crate) fn set_threshold(&self, ns: u64) {
        self.results.threshold.store(ns);
    }

    /// How many waits were measured.
    pub(crate) fn measured(&self) -> u64 {
        self.results.measured().map(SharedWord::load).sum()
    }

    /// How many wake-ups were not noted, for the slot of their task was taken.
    pub(crate) fn missed(&self) -> u64 {
        self.results.missed.load()
    }

    /// Forgets what was measured, and has no threshold any more.
    pub(crate) fn reset(&self) {
        let results = &self.results;
        let words = [&results.max, &results.threshold, &results.missed];
        Iterator::chain(words.into_iter(), results.measured()).for_each(|word| word.store(0));
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

impl Results {
    fn measured(&self) -> impl Iterator<Item = &SharedWord> {
        cpu::possible().filter_map(|cpu| self.measured.of(cpu))
    }

    /// A wait was so long.
    #[inline(always)]
    fn count(&self, ns: u64, guard: &NoPreempt) {
        let measured = self.measured.this_cpu(guard);
        measured.store(measured.load().wrapping_add(1));
        loop {
            let max = self.max.load();
            if ns <= max || self.max.compare_exchange(max, ns) {
                return;
            }
        }
    }
}
