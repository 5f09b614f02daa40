// SPDX-License-Identifier: GPL-2.0

//! What measures wake-ups: probes at the scheduler's tracepoints.

use super::results::Results;
use super::waits::{Wait, Waits, Waker};
use super::wakeup::LEN;
use crate::arch::preempt::{is_in_interrupt, NoPreempt};
use crate::arch::word::SharedWord;
use crate::event::stopwatch::Stopwatch;
use crate::record::memory::RecordWriter;
use crate::sys::args::Task;
use crate::sys::bindings;
use crate::sys::percpu::PerCpu;
use crate::sys::tracepoint::{Attachments, Handler, Tracepoints};
use kernel::prelude::*;
use kernel::sync::Arc;

/// The data of the probes.
pub(super) struct Meter {
    results: Arc<Results>,
    waits: Waits,
    /// The task that runs on each CPU; 0: none, or it is not known.
    running: PerCpu<SharedWord>,
    stopwatch: Stopwatch,
}

impl Meter {
    /// Measures until what this returns is dropped. `ENOENT`: the kernel has not the tracepoints. May
    /// sleep.
    pub(super) fn begin(results: &Arc<Results>) -> Result<Attachments<Self>> {
        let meter = Self {
            results: results.clone(),
            waits: Waits::new()?,
            running: PerCpu::new(|| SharedWord::new(0))?,
            stopwatch: Stopwatch::best(),
        };
        let meter = Arc::new(meter, GFP_KERNEL)?;
        let tracepoints = Tracepoints::new()?;
        let mut attachments = Attachments::new();
        // The end of a wait before its beginning. After those who record the same tracepoint: what is
        // measured follows it in the trace.
        for (name, handler) in [
            ("sched_switch", SWITCH),
            ("sched_wakeup", WAKEUP),
            ("sched_wakeup_new", WAKEUP_NEW),
            ("sched_waking", WAKING),
        ] {
            let tracepoint = tracepoints.find(name).ok_or(ENOENT)?;
            attachments.attach_last(tracepoint, handler, meter.clone())?;
        }
        Ok(attachments)
    }

    /// Whether a task runs, on the CPU that it is on.
    #[inline(always)]
    fn runs(&self, task: &Task) -> bool {
        let running = self.running.of(task.cpu() as u32);
        running.is_some_and(|running| running.load() == u64::from(task.tid() as u32))
    }

    #[inline(always)]
    fn begin_wait(&self, task: &Task, runs: bool) {
        let current = Task::current();
        let waker = Waker {
            tid: current.tid(),
            comm: current.comm(),
            cpu: current.cpu(),
            is_interrupt: is_in_interrupt(),
        };
        let (tid, now) = (task.tid() as u32, self.stopwatch.read());
        if self.waits.begin(tid, runs, now, &waker).is_err() {
            self.results.miss(1);
        }
    }

    #[inline(always)]
    fn end_wait(&self, task: &Task, prev: &Task, wait: Wait, now: u64, guard: &NoPreempt) {
        let latency = self.stopwatch.ns_between(wait.since, now);
        if !self.results.count(latency, guard) {
            return;
        }
        let waker = wait.waker;
        self.results.recorders.for_each(
            guard,
            #[inline(always)]
            |probe| {
                probe.record::<LEN, _>(
                    #[inline(always)]
                    || Some(task.tid()),
                    #[inline(always)]
                    || {
                        (
                            LEN as u64,
                            #[inline(always)]
                            move |to: RecordWriter<'_>| {
                                to.put(task.comm())
                                    .put(task.tid())
                                    .put(task.pid())
                                    .put(task.prio())
                                    .put(task.cpu())
                                    .put(latency)
                                    .put(waker.comm)
                                    .put(waker.tid)
                                    .put(waker.cpu)
                                    .put(u8::from(waker.is_interrupt))
                                    .put(prev.comm())
                                    .put(prev.tid())
                                    .put(prev.prio())
                                    .put_tail(&())
                            },
                        )
                    },
                )
            },
        );
    }
}

const WAKING: Handler<Meter> = Handler::new1(waking, bindings::__traceiter_sched_waking);
const WAKEUP: Handler<Meter> = Handler::new1(wakeup, bindings::__traceiter_sched_wakeup);
const WAKEUP_NEW: Handler<Meter> =
    Handler::new1(wakeup_new, bindings::__traceiter_sched_wakeup_new);
const SWITCH: Handler<Meter> = Handler::new4(switch, bindings::__traceiter_sched_switch);

#[link_section = ".kprobes.text"]
extern "C" fn waking(meter: &Meter, task: &Task) {
    meter.begin_wait(task, meter.runs(task));
}

#[link_section = ".kprobes.text"]
extern "C" fn wakeup_new(meter: &Meter, task: &Task) {
    meter.begin_wait(task, false);
}

#[link_section = ".kprobes.text"]
extern "C" fn wakeup(meter: &Meter, task: &Task) {
    let (runs, now) = (meter.runs(task), meter.stopwatch.read());
    meter.waits.ready(task.tid() as u32, runs, now);
}

#[link_section = ".kprobes.text"]
extern "C" fn switch(meter: &Meter, preempt: bool, prev: &Task, next: &Task, prev_state: u32) {
    let now = meter.stopwatch.read();
    let guard = &NoPreempt::new();
    let next_tid = next.tid() as u32;
    meter.running.this_cpu(guard).store(u64::from(next_tid));
    let is_preempted = preempt || prev.left_state(preempt, prev_state) == 0;
    meter.waits.leave(prev.tid() as u32, is_preempted);
    if let Some(wait) = meter.waits.end(next_tid) {
        meter.end_wait(next, prev, wait, now, guard);
    }
}
