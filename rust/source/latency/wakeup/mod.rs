// SPDX-License-Identifier: GPL-2.0

//! Wake-up latency: how long tasks that were woken have to wait until they run.
//!
//! Probes at the scheduler's tracepoints note [who waits](waits) and fire the event where the wait is over.

mod meter;
mod waits;

use super::metered::Metered;
use super::{field, COMM};
use crate::abi::schema::{Field, FieldType};
use meter::Wakeups;

/// The event's name.
pub(crate) const NAME: &str = "wakeup_latency";

/// Its fields, in the order of the record.
pub(crate) const FIELDS: [Field<'static>; 13] = [
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
const LEN: usize = super::len(&FIELDS);

/// The wake-ups that a session measures. Those are missed for which the slot of the task was taken.
pub(crate) type WakeupLatency = Metered<Wakeups>;
