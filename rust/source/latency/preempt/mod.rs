// SPDX-License-Identifier: GPL-2.0

//! Preemption latency: how long a task keeps its CPU that was asked to give it up.
//!
//! Probes at the scheduler's tracepoints note [what CPUs are asked for](requests) and fire the event where
//! another task follows. That the idle task is asked is not measured: it keeps nobody waiting, and while it polls
//! the kernel asks it without a tracepoint.

mod meter;
mod requests;

use super::metered::Metered;
use super::COMM;
use crate::abi::schema::{Field, FieldType};
use crate::arch::word::SharedWord;
use crate::sys::tracepoint::Attachments;
use meter::Preemptions;

/// Fields of the event, in the order of the record.
const FIELDS: [Field<'static>; 15] = [
    // Who kept the CPU.
    Field::new("comm", FieldType::text(COMM)),
    Field::new("tid", FieldType::signed(32)),
    Field::new("pid", FieldType::signed(32)),
    Field::new("prio", FieldType::signed(32)),
    // Whether it is preempted; else it gives the CPU up by itself, to wait for something or to end.
    Field::new("preempted", FieldType::unsigned(8)),
    // From the request until now, in nanoseconds.
    Field::new("latency", FieldType::unsigned(64)),
    // Whether the request was a lazy one: for the next tick, or the return to user space.
    Field::new("lazy", FieldType::unsigned(8)),
    // For how long the request had been a lazy one before that, in nanoseconds.
    Field::new("lazy_before", FieldType::unsigned(64)),
    // Who asked, or was interrupted by an interrupt or a softirq that did.
    Field::new("asker_comm", FieldType::text(COMM)),
    Field::new("asker_tid", FieldType::signed(32)),
    Field::new("asker_cpu", FieldType::signed(32)),
    Field::new("asker_in_interrupt", FieldType::unsigned(8)),
    // Who gets the CPU.
    Field::new("next_comm", FieldType::text(COMM)),
    Field::new("next_tid", FieldType::signed(32)),
    Field::new("next_prio", FieldType::signed(32)),
];

/// The bytes of a record.
const LEN: usize = super::len(&FIELDS);

/// The preemptions that a session measures. Those are missed for which two CPUs asked at once.
pub(crate) type PreemptLatency = Metered<PreemptMeter>;

/// The probes that measure them.
pub(crate) type PreemptMeter = Attachments<Preemptions>;

/// What a session can choose of them.
pub(crate) struct PreemptChoice(SharedWord);

impl PreemptChoice {
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
