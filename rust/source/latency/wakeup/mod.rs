// SPDX-License-Identifier: GPL-2.0

//! Wake-up latency: how long tasks that were woken have to wait until they run.
//!
//! Probes at the scheduler's tracepoints note [who waits](waits) and fire the event where the wait is over.

mod meter;
mod waits;

use super::metered::Metered;
use super::COMM;
use crate::abi::schema::{Field, FieldType};
use crate::sys::tracepoint::Attachments;
use meter::Wakeups;

/// Fields of the event, in the order of the record.
const FIELDS: [Field<'static>; 13] = [
    // Who had to wait.
    Field::new("comm", FieldType::text(COMM)),
    Field::new("tid", FieldType::signed(32)),
    Field::new("pid", FieldType::signed(32)),
    Field::new("prio", FieldType::signed(32)),
    // Where it runs now.
    Field::new("target_cpu", FieldType::signed(32)),
    // From the wake-up until now, in nanoseconds.
    Field::new("latency", FieldType::unsigned(64)),
    // Who woke it, or was interrupted by an interrupt or a softirq that did.
    Field::new("waker_comm", FieldType::text(COMM)),
    Field::new("waker_tid", FieldType::signed(32)),
    Field::new("waker_cpu", FieldType::signed(32)),
    Field::new("waker_in_interrupt", FieldType::unsigned(8)),
    // Who leaves the CPU for it.
    Field::new("prev_comm", FieldType::text(COMM)),
    Field::new("prev_tid", FieldType::signed(32)),
    Field::new("prev_prio", FieldType::signed(32)),
];

/// The bytes of a record.
const LEN: usize = super::len(&FIELDS);

/// The wake-ups that a session measures. Those are missed for which the slot of the task was taken.
pub(crate) type WakeupLatency = Metered<WakeupMeter>;

/// The probes that measure them.
pub(crate) type WakeupMeter = Attachments<Wakeups>;
