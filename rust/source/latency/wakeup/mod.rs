// SPDX-License-Identifier: GPL-2.0

//! Wake-up latency: how long woken and preempted tasks wait until they run.
//!
//! Probes at the scheduler's tracepoints note the [waiting tasks](waits), and fire the event when a wait ends.

mod meter;
mod waits;

use super::metered::Metered;
use crate::record::memory::Payload;
use crate::source::field::record;
use crate::sys::tracepoint::Attachments;
use meter::Wakeups;

record! {
    /// A wait that was measured.
    WakeupRecord {
        // Task that had to wait.
        comm: [u8; 16],
        tid: i32,
        pid: i32,
        prio: i32,
        // Where it runs now.
        target_cpu: i32,
        // From the wake-up or preemption until now, in nanoseconds.
        latency: u64,
        // Task that woke it, or that a waking interrupt or softirq interrupted. After a preemption: task that got
        // the CPU.
        waker_comm: [u8; 16],
        waker_tid: i32,
        waker_cpu: i32,
        waker_in_interrupt: u8,
        // Task that leaves the CPU for it.
        prev_comm: [u8; 16],
        prev_tid: i32,
        prev_prio: i32,
        // Whether the task was preempted, or yielded; otherwise it was woken.
        preempted: u8,
    }
}

/// The waits that a session measures. A wait is missed if the slot of its task was taken.
pub(crate) type WakeupLatency = Metered<WakeupMeter>;

/// The probes that measure them.
pub(crate) type WakeupMeter = Attachments<Wakeups>;
