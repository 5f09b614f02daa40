// SPDX-License-Identifier: GPL-2.0

//! The two probes of triggers at system calls.

use super::plan::{self, Plans, Record};
use super::{call, Call, Direction, UNKNOWN};
use crate::arch::preempt::NoPreempt;
use crate::probe::handlers::handler;
use crate::probe::Probe;
use crate::sys::args::{Registers, Task};
use crate::sys::bindings;
use crate::sys::tracepoint::Handler;
use kernel::sync::Arc;

/// A call with a trigger, at its entry or at its exit; the data of that tracepoint's handler.
pub(crate) struct SyscallTrigger {
    slot: u32,
    probe: Arc<Probe>,
}

impl SyscallTrigger {
    /// Has `probe` get the records of `call`.
    pub(crate) fn new(call: &Call, probe: Arc<Probe>) -> Self {
        let slot = call.slot();
        Self { slot, probe }
    }

    /// What gets them.
    pub(crate) fn probe(&self) -> &Arc<Probe> {
        &self.probe
    }

    fn record(&self, registers: &Registers, plans: &Plans) {
        let slot = plan::slot(registers.number(), Task::current().is_in_compat_call());
        // Slots without a call of their own go with the unknown.
        if slot != self.slot && (self.slot != UNKNOWN || call(slot).is_some()) {
            return;
        }
        let Some(plan) = plans.get(slot) else {
            return;
        };
        if plan.pieces != 0 {
            return self.record_with_pieces(slot, plans, registers);
        }
        self.record_fields(&Record {
            plan,
            registers,
            pieces: &[],
        });
    }

    /// With what its arguments point to, which a filter may ask for; before preemption is disabled, for this may
    /// sleep.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn record_with_pieces(&self, slot: u32, plans: &Plans, registers: &Registers) {
        let Some(plan) = plans.get(slot) else {
            return;
        };
        let pieces = plans.copy(slot, registers);
        self.record_fields(&Record {
            plan,
            registers,
            pieces: pieces.bytes(),
        });
    }

    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn record_fields(&self, fields: &Record<'_>) {
        self.probe.record_tail(fields, &NoPreempt::new());
    }
}

/// The handler. Its tracepoint calls it where page faults and sleep are allowed.
pub(crate) fn trigger_handler(direction: Direction) -> Handler<SyscallTrigger> {
    match direction {
        Direction::Entry => ENTER,
        Direction::Exit => EXIT,
    }
}

const ENTER: Handler<SyscallTrigger> =
    handler!([registers number], enter, bindings::__traceiter_sys_enter);
const EXIT: Handler<SyscallTrigger> =
    handler!([registers result], exit, bindings::__traceiter_sys_exit);

// Kprobes stay out: one on a probe could fire the probe.
#[link_section = ".kprobes.text"]
extern "C" fn enter(trigger: &SyscallTrigger, registers: &Registers, _number: isize) {
    trigger.record(registers, &plan::ENTRY);
}

#[link_section = ".kprobes.text"]
extern "C" fn exit(trigger: &SyscallTrigger, registers: &Registers, _result: isize) {
    trigger.record(registers, &plan::EXIT);
}
