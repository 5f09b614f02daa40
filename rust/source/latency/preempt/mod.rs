// SPDX-License-Identifier: GPL-2.0

//! Preemption latency: how long a task keeps its CPU after it was asked to give it up.
//!
//! Probes at the scheduler's tracepoints note the [requests](requests) to CPUs, and fire the event when another
//! task follows. Requests to the idle task are not measured: it keeps nobody waiting, and while it polls, the
//! kernel asks it without a tracepoint.

mod meter;
mod requests;

use super::metered::Metered;
use crate::arch::word::SharedWord;
use crate::record::memory::Payload;
use crate::source::field::record;
use crate::sys::tracepoint::Attachments;
use meter::Preemptions;

record! {
    /// A preemption that was measured.
    PreemptRecord {
        // Task that kept the CPU.
        comm: [u8; 16],
        tid: i32,
        pid: i32,
        prio: i32,
        // Whether it is preempted; else it gives the CPU up by itself, to wait for something or to end.
        preempted: u8,
        // From the request until now, in nanoseconds.
        latency: u64,
        // Whether the request was a lazy one: for the next tick, or the return to user space.
        lazy: u8,
        // For how long the request had been a lazy one before that, in nanoseconds.
        lazy_before: u64,
        // Task that asked, or that an asking interrupt or softirq interrupted.
        asker_comm: [u8; 16],
        asker_tid: i32,
        asker_cpu: i32,
        asker_in_interrupt: u8,
        // Task that gets the CPU.
        next_comm: [u8; 16],
        next_tid: i32,
        next_prio: i32,
    }
}

/// The preemptions that a session measures. A preemption for which two CPUs asked at once is missed.
pub(crate) type PreemptLatency = Metered<PreemptMeter>;

/// The tracepoints that only some kernels have.
pub(super) const TRACEPOINTS: [&str; 3] = [
    "sched_exit_tp",
    "sched_entry_tp",
    "sched_set_need_resched_tp",
];

/// The probes that measure them.
pub(crate) type PreemptMeter = Attachments<Preemptions>;

/// The settings of a session for preemptions.
pub(crate) struct PreemptChoice(SharedWord);

impl PreemptChoice {
    /// Makes settings with which lazy requests do not count.
    pub(crate) const fn new() -> Self {
        Self(SharedWord::new(0))
    }

    /// Whether lazy requests count.
    pub(crate) fn counts_lazy(&self) -> bool {
        self.0.load() != 0
    }

    /// Sets whether lazy requests count.
    pub(crate) fn count_lazy(&self, count: bool) {
        self.0.store(count.into());
    }
}
