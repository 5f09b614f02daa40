// SPDX-License-Identifier: GPL-2.0

//! Measures preemptions, by probes at the scheduler's tracepoints.

use super::requests::{Request, RequestKind, Requests};
use super::{PreemptChoice, PreemptMeter, PreemptRecord, TRACEPOINTS};
use crate::abi::schema::Field;
use crate::arch::preempt::NoPreempt;
use crate::probe::stopwatch::Stopwatch;
use crate::source::latency::metered::{self, Meter};
use crate::source::latency::results::Results;
use crate::sys::args::Task;
use crate::sys::bindings;
use crate::sys::tracepoint::Handler;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The data of the probes.
pub(crate) struct Preemptions {
    results: Arc<Results>,
    choice: Arc<PreemptChoice>,
    requests: Requests,
    stopwatch: Stopwatch,
}

impl Meter for PreemptMeter {
    const NAME: &'static str = "preempt_latency";

    const FIELDS: &'static [Field<'static>] = PreemptRecord::FIELDS;

    type Choice = PreemptChoice;

    fn new(results: &Arc<Results>, choice: &Arc<PreemptChoice>) -> Result<Self> {
        let preemptions = Preemptions {
            results: results.clone(),
            choice: choice.clone(),
            requests: Requests::new()?,
            stopwatch: Stopwatch::best(),
        };
        let sched_switch = Handler::new4(switch, bindings::__traceiter_sched_switch);
        let sched_exit = Handler::new1(exit, bindings::__traceiter_sched_exit_tp);
        let sched_entry = Handler::new1(entry, bindings::__traceiter_sched_entry_tp);
        let need_resched = bindings::__traceiter_sched_set_need_resched_tp;
        let set_need_resched = Handler::new3(set_need_resched, need_resched);
        let [exit, entry, asked] = TRACEPOINTS;
        let handlers = [
            ("sched_switch", sched_switch),
            (exit, sched_exit),
            (entry, sched_entry),
            (asked, set_need_resched),
        ];
        metered::attach(preemptions, &handlers)
    }
}

/// The measured times of a request.
#[derive(Clone, Copy)]
struct Met {
    latency: u64,
    lazy_before: u64,
    is_preempted: bool,
}

impl Preemptions {
    #[inline(always)]
    fn met(&self, request: &Request, prev: &Task, next: &Task, met: Met, guard: &NoPreempt) {
        let &Request { kind, asker, .. } = request;
        self.results.probes.handle_fields(
            Some(prev),
            #[inline(always)]
            move || PreemptRecord {
                comm: prev.comm(),
                tid: prev.tid(),
                pid: prev.tgid(),
                prio: prev.prio(),
                preempted: met.is_preempted.into(),
                latency: met.latency,
                lazy: (kind == RequestKind::Lazy).into(),
                lazy_before: met.lazy_before,
                asker_comm: asker.comm,
                asker_tid: asker.tid,
                asker_cpu: asker.cpu,
                asker_in_interrupt: asker.is_interrupt.into(),
                next_comm: next.comm(),
                next_tid: next.tid(),
                next_prio: next.prio(),
            },
            guard,
        );
    }
}

/// Notes a request: `flag` of a task is about to be set.
#[link_section = ".kprobes.text"]
extern "C" fn set_need_resched(meter: &Preemptions, task: &Task, cpu: i32, flag: i32) {
    let kind = match flag as u32 {
        bindings::TIF_NEED_RESCHED => RequestKind::AtOnce,
        _ => RequestKind::Lazy,
    };
    let now = meter.stopwatch.read();
    // The idle task's id is 0.
    if task.tid() != 0 && meter.requests.ask(cpu as u32, task, kind, now).is_err() {
        meter.results.miss(1);
    }
}

#[link_section = ".kprobes.text"]
extern "C" fn entry(meter: &Preemptions, _preempt: bool) {
    let guard = &NoPreempt::new();
    meter.requests.schedules(&Task::current(), guard);
}

#[link_section = ".kprobes.text"]
extern "C" fn exit(meter: &Preemptions, is_switch: bool) {
    if !is_switch {
        let guard = &NoPreempt::new();
        meter.requests.runs_on(&Task::current(), guard);
    }
}

#[link_section = ".kprobes.text"]
extern "C" fn switch(
    meter: &Preemptions,
    preempt: bool,
    prev: &Task,
    next: &Task,
    prev_state: u32,
) {
    let now = meter.stopwatch.read();
    let guard = &NoPreempt::new();
    let Some(request) = meter.requests.leaves(prev, guard) else {
        return;
    };
    if request.kind == RequestKind::Lazy && !meter.choice.counts_lazy() {
        return;
    }
    let met = Met {
        latency: meter.stopwatch.ns_between(request.since, now),
        lazy_before: meter
            .stopwatch
            .ns_between(request.lazy_since, request.since),
        is_preempted: preempt || prev.left_state(preempt, prev_state) == 0,
    };
    if meter.results.count(met.latency, guard) {
        meter.met(&request, prev, next, met, guard);
    }
}
