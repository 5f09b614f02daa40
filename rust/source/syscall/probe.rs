// SPDX-License-Identifier: GPL-2.0

//! The two handlers of system calls, which find the probe of each call.

use super::data::{self, MovedBytes, MovedPlaces};
use super::plan::{self, Pieces, Plan, Plans, SyscallRecord};
use super::{exec, Call, Direction, SLOTS, UNKNOWN};
use crate::arch::preempt::NoPreempt;
use crate::probe::handlers::{handler, handlers, recording, Handlers};
use crate::probe::Probe;
use crate::record::format::{CompactTsc, Format};
use crate::record::gate::FilledOnce;
use crate::sys::args::{Registers, Task};
use crate::sys::bindings;
use crate::sys::percpu::OnceArc;
use crate::sys::tracepoint::Handler;
use kernel::prelude::*;
use kernel::sync::Arc;
use pin_init::init_array_from_fn;

/// The probes of calls, at their entries or at their exits. This is the data of that tracepoint's handler.
pub(crate) struct CallProbes {
    direction: Direction,
    /// Whether the probes record the bytes that calls move, and not the calls.
    is_data: bool,
    /// The probes by slot. A probe is never removed, because a call that sleeps may use it.
    probes: [OnceArc<Probe>; SLOTS as usize],
}

impl CallProbes {
    /// Makes the table without probes.
    pub(super) fn new(direction: Direction, is_data: bool) -> Result<Arc<Self>> {
        Arc::init(
            init!(Self {
                direction,
                is_data,
                probes <- init_array_from_fn(|_| OnceArc::new()),
            }),
            GFP_KERNEL,
        )
    }

    /// Whether these are probes of entries or exits, and of data.
    pub(super) fn are(&self, direction: Direction, is_data: bool) -> bool {
        self.direction == direction && self.is_data == is_data
    }

    /// Whether the probes record into the same channel as `probe`; all of them do, or none.
    pub(super) fn share_channel(&self, probe: &Probe) -> bool {
        let first = self.iter().next();
        first.is_some_and(|first| first.shares_channel(probe))
    }

    /// Whether this call has a probe.
    pub(super) fn has(&self, call: &Call) -> bool {
        self.get(call.slot()).is_some()
    }

    /// Makes `probe` record `call`, which had no probe so far.
    pub(super) fn set(&self, call: &Call, probe: &Arc<Probe>) {
        if let Some(place) = self.probes.get(call.slot() as usize) {
            place.set(probe.clone());
        }
        if call.slot() == UNKNOWN {
            // The probe of unknown calls also serves the slots without a known call.
            let places = (0..).zip(&self.probes);
            places
                .filter(|(slot, _)| super::call(*slot).is_none())
                .for_each(|(_, place)| {
                    place.set(probe.clone());
                });
        }
    }

    /// The probe of each call that has one.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Probe> {
        super::calls().filter_map(|call| self.get(call.slot()))
    }

    /// Any context, NMI included.
    #[inline(always)]
    fn get(&self, slot: u32) -> Option<&Probe> {
        self.probes.get(slot as usize)?.get()
    }
}

recording!(
    probe [plan: &Plan, registers: &Registers, pieces: &[u8]],
    least: plan.least(),
    payload: SyscallRecord { plan, registers, pieces }.payload(),
    looking: {
        let record = SyscallRecord { plan, registers, pieces };
        probe.handle_tail(&record, &NoPreempt::new())
    },
);

#[inline(always)]
fn enter_and_record<F: Format>(probe: &Probe, plan: &Plan, registers: &Registers, pieces: &[u8]) {
    match probe.enter() {
        Ok(entered) => record::<F>(probe, plan, registers, pieces, entered),
        Err(stopped) => admit::<F>(probe, plan, registers, pieces, stopped),
    }
}

/// Records a call with the data that its arguments point to. The copy may sleep, so it comes before preemption is
/// disabled.
#[cold]
#[inline(never)]
#[link_section = ".kprobes.text"]
fn record_with_pieces<F: Format>(probe: &Probe, slot: u32, plans: &Plans, registers: &Registers) {
    let Some(plan) = plans.get(slot) else {
        return;
    };
    // This comes first, so that calls of other tasks cost little.
    if !probe.wants_current_task() {
        return;
    }
    // This can take as long as another process likes. If the call is deselected meanwhile, `record` finds its
    // probe disabled.
    let mut pieces = Pieces::new();
    plans.copy(slot, registers, &mut pieces);
    enter_and_record::<F>(probe, plan, registers, pieces.bytes());
}

/// The handlers of a direction, one for each format. The tracepoint calls them where page faults and sleep are
/// allowed.
pub(super) fn handlers(direction: Direction) -> &'static Handlers<CallProbes> {
    match direction {
        Direction::Entry => &ENTER,
        Direction::Exit => &EXIT,
    }
}

static ENTER: Handlers<CallProbes> =
    handlers!([registers number], enter, bindings::__traceiter_sys_enter);
static EXIT: Handlers<CallProbes> =
    handlers!([registers result], exit, bindings::__traceiter_sys_exit);

/// As [`handlers`], of the bytes that calls move.
pub(super) fn data_handlers(direction: Direction) -> &'static Handlers<CallProbes> {
    match direction {
        Direction::Entry => &ENTER_DATA,
        Direction::Exit => &EXIT_DATA,
    }
}

static ENTER_DATA: Handlers<CallProbes> = handlers!(
    [registers number],
    enter_data,
    bindings::__traceiter_sys_enter
);
static EXIT_DATA: Handlers<CallProbes> =
    handlers!([registers result], exit_data, bindings::__traceiter_sys_exit);

/// The handler of a direction for probes of maps.
pub(super) fn updating(direction: Direction) -> Handler<CallProbes> {
    match direction {
        Direction::Entry => UPDATE_AT_ENTRY,
        Direction::Exit => UPDATE_AT_EXIT,
    }
}

const UPDATE_AT_ENTRY: Handler<CallProbes> = handler!(
    [registers number],
    update_at_entry,
    bindings::__traceiter_sys_enter
);
const UPDATE_AT_EXIT: Handler<CallProbes> = handler!(
    [registers result],
    update_at_exit,
    bindings::__traceiter_sys_exit
);

// These functions cannot be probed: a kprobe on a probe could fire the probe.
#[link_section = ".kprobes.text"]
extern "C" fn enter<F: Format>(probes: &CallProbes, registers: &Registers, _number: isize) {
    called::<F>(probes, registers, is_compat(), &plan::ENTRY);
}

#[link_section = ".kprobes.text"]
extern "C" fn exit<F: Format>(probes: &CallProbes, registers: &Registers, _result: isize) {
    if exec::may_end(registers) {
        return exit_of_exec::<F>(probes, registers);
    }
    called::<F>(probes, registers, is_compat(), &plan::EXIT);
}

#[link_section = ".kprobes.text"]
extern "C" fn enter_data<F: Format>(probes: &CallProbes, registers: &Registers, _number: isize) {
    moved::<F>(probes, registers, &data::GIVEN);
}

#[link_section = ".kprobes.text"]
extern "C" fn exit_data<F: Format>(probes: &CallProbes, registers: &Registers, _result: isize) {
    moved::<F>(probes, registers, &data::FILLED);
}

#[inline(always)]
fn moved<F: Format>(probes: &CallProbes, registers: &Registers, places: &MovedPlaces) {
    let slot = plan::slot(registers.number(), is_compat());
    if let Some(probe) = probes.get(slot) {
        record_data::<F>(probe, slot, places, registers);
    }
}

/// Records the bytes that a call moves. As [`record_with_pieces`].
#[cold]
#[inline(never)]
#[link_section = ".kprobes.text"]
fn record_data<F: Format>(probe: &Probe, slot: u32, places: &MovedPlaces, registers: &Registers) {
    if !probe.wants_current_task() {
        return;
    }
    let mut data = MovedBytes::new();
    if places.copy(slot, registers, &mut data).is_some() {
        enter_and_record::<F>(probe, &data::PLAN, registers, data.bytes());
    }
}

#[cold]
#[inline(never)]
#[link_section = ".kprobes.text"]
fn exit_of_exec<F: Format>(probes: &CallProbes, registers: &Registers) {
    let is_compat = exec::ends_compat(registers, is_compat());
    called::<F>(probes, registers, is_compat, &plan::EXIT);
}

#[link_section = ".kprobes.text"]
extern "C" fn update_at_entry(probes: &CallProbes, registers: &Registers, number: isize) {
    updated::<false>(probes, registers, number, is_compat());
}

#[link_section = ".kprobes.text"]
extern "C" fn update_at_exit(probes: &CallProbes, registers: &Registers, result: isize) {
    if exec::may_end(registers) {
        return update_at_exit_of_exec(probes, registers, result);
    }
    updated::<true>(probes, registers, result, is_compat());
}

#[cold]
#[inline(never)]
#[link_section = ".kprobes.text"]
fn update_at_exit_of_exec(probes: &CallProbes, registers: &Registers, result: isize) {
    let is_compat = exec::ends_compat(registers, is_compat());
    updated::<true>(probes, registers, result, is_compat);
}

/// Whether the program that makes a call has 32 bits.
#[inline(always)]
fn is_compat() -> bool {
    Task::current().is_in_compat_call()
}

/// Updates a map by a call, without its record if that is possible.
#[inline(always)]
fn updated<const AT_EXIT: bool>(
    probes: &CallProbes,
    registers: &Registers,
    number: isize,
    is_compat: bool,
) {
    let slot = plan::slot(registers.number(), is_compat);
    if let Some(probe) = probes.get(slot) {
        probe.update_single_or(
            #[inline(always)]
            |_| None,
            #[inline(always)]
            || update::<AT_EXIT>(probe, probes, registers, number),
        );
    }
}

#[inline(never)]
#[link_section = ".kprobes.text"]
fn update<const AT_EXIT: bool>(
    probe: &Probe,
    probes: &CallProbes,
    registers: &Registers,
    number: isize,
) {
    probe.update_or(
        || None,
        |_| None,
        |_| None,
        #[inline(always)]
        || match AT_EXIT {
            true => exit::<CompactTsc>(probes, registers, number),
            false => enter::<CompactTsc>(probes, registers, number),
        },
    );
}

#[inline(always)]
fn called<F: Format>(probes: &CallProbes, registers: &Registers, is_compat: bool, plans: &Plans) {
    let slot = plan::slot(registers.number(), is_compat);
    let Some(probe) = probes.get(slot) else {
        return;
    };
    let Some(plan) = plans.get(slot) else {
        return;
    };
    if plan.pieces != 0 {
        return record_with_pieces::<F>(probe, slot, plans, registers);
    }
    enter_and_record::<F>(probe, plan, registers, &[]);
}
