// SPDX-License-Identifier: GPL-2.0

//! Measures waits for a CPU, by probes at the scheduler's tracepoints.

use super::waits::{Wait, Waits};
use super::{WakeupMeter, WakeupRecord};
use crate::abi::schema::Field;
use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::probe::stopwatch::Stopwatch;
use crate::source::latency::metered::{self, Meter};
use crate::source::latency::results::Results;
use crate::source::latency::who::Who;
use crate::sys::args::Task;
use crate::sys::bindings;
use crate::sys::percpu::PerCpu;
use crate::sys::tracepoint::Handler;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The data of the probes.
pub(crate) struct Wakeups {
    results: Arc<Results>,
    waits: Waits,
    /// The task that runs on each CPU; 0 if it is idle or not known.
    running: PerCpu<SharedWord>,
    stopwatch: Stopwatch,
}

impl Meter for WakeupMeter {
    const NAME: &'static str = "wakeup_latency";

    const FIELDS: &'static [Field<'static>] = WakeupRecord::FIELDS;

    type Choice = ();

    fn new(results: &Arc<Results>, _choice: &Arc<()>) -> Result<Self> {
        let wakeups = Wakeups {
            results: results.clone(),
            waits: Waits::new()?,
            running: PerCpu::new(|| SharedWord::new(0))?,
            stopwatch: Stopwatch::best(),
        };
        let sched_switch = Handler::new4(switch, bindings::__traceiter_sched_switch);
        let sched_wakeup = Handler::new1(wakeup, bindings::__traceiter_sched_wakeup);
        let sched_wakeup_new = Handler::new1(wakeup_new, bindings::__traceiter_sched_wakeup_new);
        let sched_waking = Handler::new1(waking, bindings::__traceiter_sched_waking);
        let handlers = [
            ("sched_switch", sched_switch),
            ("sched_wakeup", sched_wakeup),
            ("sched_wakeup_new", sched_wakeup_new),
            ("sched_waking", sched_waking),
        ];
        metered::attach(wakeups, &handlers)
    }
}

impl Wakeups {
    /// Whether a task runs on its CPU.
    #[inline(always)]
    fn runs(&self, task: &Task) -> bool {
        let running = self.running.of(task.cpu() as u32);
        // Pairs with the release in `switch`: a task that does not run has left its CPU.
        running.is_some_and(|running| running.load_acquire() == u64::from(task.tid() as u32))
    }

    #[inline(always)]
    fn wake(&self, task: &Task, runs: bool) {
        let (tid, now) = (task.tid() as u32, self.stopwatch.read());
        if self.waits.wake(tid, runs, now, Who::now).is_err() {
            self.results.miss(1);
        }
    }

    #[inline(always)]
    fn end_wait(&self, task: &Task, prev: &Task, wait: Wait, now: u64, guard: &NoPreempt) {
        let latency = self.stopwatch.ns_between(wait.since, now);
        if !self.results.count(latency, guard) {
            return;
        }
        let waker = wait.cause;
        self.results.probes.handle_fields(
            Some(task),
            #[inline(always)]
            move || WakeupRecord {
                comm: task.comm(),
                tid: task.tid(),
                pid: task.tgid(),
                prio: task.prio(),
                target_cpu: task.cpu(),
                latency,
                waker_comm: waker.comm,
                waker_tid: waker.tid,
                waker_cpu: waker.cpu,
                waker_in_interrupt: waker.is_interrupt.into(),
                prev_comm: prev.comm(),
                prev_tid: prev.tid(),
                prev_prio: prev.prio(),
                preempted: wait.is_preempted.into(),
            },
            guard,
        );
    }
}

#[link_section = ".kprobes.text"]
extern "C" fn waking(meter: &Wakeups, task: &Task) {
    meter.wake(task, meter.runs(task));
}

#[link_section = ".kprobes.text"]
extern "C" fn wakeup_new(meter: &Wakeups, task: &Task) {
    meter.wake(task, false);
}

#[link_section = ".kprobes.text"]
extern "C" fn wakeup(meter: &Wakeups, task: &Task) {
    let (runs, now) = (meter.runs(task), meter.stopwatch.read());
    meter.waits.ready(task.tid() as u32, runs, now);
}

#[link_section = ".kprobes.text"]
extern "C" fn switch(meter: &Wakeups, preempt: bool, prev: &Task, next: &Task, prev_state: u32) {
    let now = meter.stopwatch.read();
    let guard = &NoPreempt::new();
    let next_tid = next.tid() as u32;
    let prev_tid = prev.tid() as u32;
    if preempt || prev.left_state(preempt, prev_state) == 0 {
        let to_next = || Who::of(next, prev.cpu());
        if meter.waits.preempt(prev_tid, now, to_next).is_err() {
            meter.results.miss(1);
        }
    } else {
        meter.waits.leave(prev_tid);
    }
    // Pairs with the acquire in `runs`. In the other order, a task that another CPU wakes at this moment could
    // be taken for a task that waits, and `leave` would remove its wait here.
    let running = meter.running.this_cpu(guard);
    running.store_release(u64::from(next_tid));
    if let Some(wait) = meter.waits.end(next_tid) {
        meter.end_wait(next, prev, wait, now, guard);
    }
}
