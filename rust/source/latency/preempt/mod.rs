// SPDX-License-Identifier: GPL-2.0

//! Preemption latency: how long a task keeps its CPU that was asked to give it up.
//!
//! Probes at the scheduler's tracepoints note [what CPUs are asked for](requests) and fire the event where
//! another task follows. That the idle task is asked is not measured: it keeps nobody waiting, and while it polls
//! the kernel asks it without a tracepoint.

mod meter;
mod requests;

use super::metered::Metered;
use super::{field, COMM};
use crate::abi::schema::{Field, FieldType};
use crate::arch::word::SharedWord;
use meter::Preemptions;

/// The event's name.
pub(crate) const NAME: &str = "preempt_latency";

/// Its fields, in the order of the record.
pub(crate) const FIELDS: [Field<'static>; 15] = [
    // Who kept the CPU.
    field("comm", FieldType::text(COMM)),
    field("tid", FieldType::signed(32)),
    field("pid", FieldType::signed(32)),
    field("prio", FieldType::signed(32)),
    // Whether it is preempted; else it gives the CPU up by itself, to wait for something or to end.
    field("preempted", FieldType::unsigned(8)),
    // From the request until now, in nanoseconds.
    field("latency", FieldType::unsigned(64)),
    // Whether the request was a lazy one: for the next tick, or the return to user space.
    field("lazy", FieldType::unsigned(8)),
    // For how long the request had been a lazy one before that, in nanoseconds.
    field("lazy_before", FieldType::unsigned(64)),
    // Who asked, or was interrupted by an interrupt or a softirq that did.
    field("asker_comm", FieldType::text(COMM)),
    field("asker_tid", FieldType::signed(32)),
    field("asker_cpu", FieldType::signed(32)),
    field("asker_in_interrupt", FieldType::unsigned(8)),
    // Who gets the CPU.
    field("next_comm", FieldType::text(COMM)),
    field("next_tid", FieldType::signed(32)),
    field("next_prio", FieldType::signed(32)),
];

/// The bytes of a record.
const LEN: usize = super::len(&FIELDS);

/// The preemptions that a session measures. Those are missed for which two CPUs asked at once.
pub(crate) type PreemptLatency = Metered<Preemptions>;

/// What a session can choose of them.
pub(crate) struct Choice(SharedWord);

impl Choice {
    /// Lazy requests do not count.
    pub(crate) const fn new() -> Self {
        Self(SharedWord::new(0))
    }

    /// Whether lazy requests count.
    pub(crate) fn counts_lazy(&self) -> bool {
        self.0.load() != 0
    }

    /// Has them count from now on, or not.
    pub(crate) fn count_lazy(&self, count: bool) {
        self.0.store(count.into());
    }
}
