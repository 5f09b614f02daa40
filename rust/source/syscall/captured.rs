// SPDX-License-Identifier: GPL-2.0

//! The two probes of system calls that are captured: those with a filter, or with contexts.

use super::plan::{self, Plans, Record};
use super::probe::{Numbers, SyscallProbe};
use super::{call, Direction, SLOTS, UNKNOWN};
use crate::arch::preempt::NoPreempt;
use crate::channel::Channel;
use crate::context::ContextSet;
use crate::probe::captured::{WithContexts, LONGEST};
use crate::probe::filter::Filter;
use crate::probe::handlers::handler;
use crate::probe::tasks::Tasks;
use crate::record::memory::{tail_alone, Capture};
use crate::sys::args::{Registers, Task};
use crate::sys::bindings;
use crate::sys::rcu::{RcuArc, Retired};
use crate::sys::tracepoint::Handler;
use kernel::prelude::*;
use kernel::sync::Arc;
use pin_init::init_array_from_fn;

/// The calls that are recorded in a trace, and captured, at their entries or at their exits; the
/// data of that tracepoint's handler.
pub(crate) struct CapturedSyscallProbe {
    calls: SyscallProbe,
    tasks: Arc<Tasks>,
    contexts: Arc<ContextSet>,
    /// By slot.
    filters: [RcuArc<Filter>; SLOTS as usize],
}

impl CapturedSyscallProbe {
    /// Makes the probe, of no call yet.
    pub(crate) fn new(
        channel: &Channel,
        direction: Direction,
        tasks: Arc<Tasks>,
        contexts: Arc<ContextSet>,
    ) -> Result<Arc<Self>> {
        Arc::init(
            init!(Self {
                calls <- SyscallProbe::init(channel, direction),
                tasks,
                contexts,
                filters <- init_array_from_fn(|_| RcuArc::new()),
            }),
            GFP_KERNEL,
        )
    }

    /// Entries or exits.
    pub(crate) fn direction(&self) -> Direction {
        self.calls.direction()
    }

    /// Whether it records into `channel`.
    pub(crate) fn is_of(&self, channel: &Channel) -> bool {
        self.calls.is_of(channel)
    }

    /// Whether no call is recorded.
    pub(crate) fn is_unused(&self) -> bool {
        self.calls.is_unused()
    }

    /// Records exactly these calls from now on. One caller at a time.
    pub(crate) fn select(&self, calls: &Numbers) {
        self.calls.select(calls);
    }

    /// The call in `slot` has another filter from now on, or none. May sleep.
    pub(crate) fn set_filter(
        &self,
        slot: u32,
        filter: Option<&Arc<Filter>>,
        retired: &mut Retired<Filter>,
    ) {
        for (place, filters) in (0..).zip(&self.filters) {
            // Slots without a call of their own go with the unknown.
            if place == slot || slot == UNKNOWN && call(place).is_none() {
                filters.replace_later(filter.cloned(), retired);
            }
        }
    }

    fn record(&self, registers: &Registers, plans: &Plans) {
        let task = Task::current();
        // First of all: calls of others shall cost little.
        let is_wanted = {
            let guard = NoPreempt::new();
            self.tasks.wants(task.tid(), &guard) && self.tasks.wants_current_cgroup(&guard)
        };
        if !is_wanted {
            return;
        }
        let slot = plan::slot(registers.number(), task.is_in_compat_call());
        let Some(number) = self.calls.number(slot) else {
            return;
        };
        let (Some(plan), Some(filter)) = (plans.get(slot), self.filters.get(slot as usize)) else {
            return;
        };
        if plan.pieces != 0 {
            return self.record_with_pieces(number, slot, plans, registers, filter);
        }
        self.record_fields(
            number,
            &Record {
                plan,
                registers,
                pieces: &[],
            },
            filter,
        );
    }

    /// With what its arguments point to; before preemption is disabled, for this may sleep.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn record_with_pieces(
        &self,
        number: u32,
        slot: u32,
        plans: &Plans,
        registers: &Registers,
        filter: &RcuArc<Filter>,
    ) {
        let Some(plan) = plans.get(slot) else {
            return;
        };
        let pieces = plans.copy(slot, registers);
        // That may have taken as long as another process liked.
        if self.calls.number(slot) != Some(number) {
            return;
        }
        self.record_fields(
            number,
            &Record {
                plan,
                registers,
                pieces: pieces.bytes(),
            },
            filter,
        );
    }

    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn record_fields(&self, number: u32, fields: &Record<'_>, filter: &RcuArc<Filter>) {
        let guard = NoPreempt::new();
        if let Some(filter) = filter.get(&guard) {
            let (len, write) = tail_alone(fields);
            let mut capture = Capture::<LONGEST>::new();
            let captured = capture.fill(len, write);
            if !captured.is_some_and(|fields| filter.wants(fields, &guard)) {
                return;
            }
        }
        WithContexts {
            contexts: &self.contexts,
            guard: &guard,
            fields,
        }
        .record(self.calls.destination(number));
    }
}

/// The handler. Its tracepoint calls it where page faults and sleep are allowed.
pub(crate) fn handler(direction: Direction) -> Handler<CapturedSyscallProbe> {
    match direction {
        Direction::Entry => ENTER,
        Direction::Exit => EXIT,
    }
}

const ENTER: Handler<CapturedSyscallProbe> =
    handler!([registers number], enter, bindings::__traceiter_sys_enter);
const EXIT: Handler<CapturedSyscallProbe> =
    handler!([registers result], exit, bindings::__traceiter_sys_exit);

// Kprobes stay out: one on a probe could fire the probe.
#[link_section = ".kprobes.text"]
extern "C" fn enter(probe: &CapturedSyscallProbe, registers: &Registers, _number: isize) {
    probe.record(registers, &plan::ENTRY);
}

#[link_section = ".kprobes.text"]
extern "C" fn exit(probe: &CapturedSyscallProbe, registers: &Registers, _result: isize) {
    probe.record(registers, &plan::EXIT);
}
