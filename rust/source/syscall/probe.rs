// SPDX-License-Identifier: GPL-2.0

//! The two probes of system calls.

use super::plan::{self, Plan, Plans, Record};
use super::{Direction, SLOTS, UNKNOWN};
use crate::arch::word::SharedWord;
use crate::channel::entrance::Entrance;
use crate::channel::{Buffer, Entered, Waiting, Ways};
use crate::channel::{Channel, Setup};
use crate::probe::handlers::{handlers, Handlers};
use crate::probe::Destination;
use crate::record::format::Format;
use crate::record::header::{EventHeader, Label};
use crate::record::memory::tail_alone;
use crate::sys::args::{Registers, Task};
use crate::sys::bindings;
use crate::sys::tracepoint::Handler;
use kernel::prelude::*;
use kernel::sync::Arc;
use pin_init::init_array_from_fn;

/// No number of an event: the call is not recorded.
const NOT_RECORDED: u64 = u64::MAX;

/// The calls that are recorded in a trace, at their entries or at their exits; the data of that
/// tracepoint's handler.
pub(crate) struct SyscallProbe {
    /// The buffers of `entrance`, kept here to save a load.
    buffers: Ways,
    /// No more of the channel: a call that sleeps may have this after the channel's end.
    entrance: Arc<Entrance>,
    direction: Direction,
    /// By slot: the number of the event in the trace, or [`NOT_RECORDED`]. Changes while the
    /// handler runs.
    numbers: [SharedWord; SLOTS as usize],
}

/// The calls that shall be recorded, with the numbers of their events in the trace.
pub(crate) struct Numbers(KVec<u64>);

impl Numbers {
    /// `calls` are slots and numbers. May sleep.
    pub(crate) fn new(calls: impl Iterator<Item = (u32, u32)>) -> Result<Self> {
        let mut numbers = KVec::from_elem(NOT_RECORDED, SLOTS as usize, GFP_KERNEL)?;
        for (slot, number) in calls {
            if let Some(place) = numbers.get_mut(slot as usize) {
                *place = number.into();
            }
        }
        // Slots without a call of their own go with the unknown.
        let unknown = numbers.get(UNKNOWN as usize).copied();
        for (slot, place) in (0..).zip(&mut numbers) {
            if super::call(slot).is_none() {
                *place = unknown.unwrap_or(NOT_RECORDED);
            }
        }
        Ok(Self(numbers))
    }
}

impl SyscallProbe {
    /// Makes the probe, of no call yet.
    pub(crate) fn new(channel: &Channel, direction: Direction) -> Result<Arc<Self>> {
        Arc::init(Self::init(channel, direction), GFP_KERNEL)
    }

    /// The same in place, for it is large for a stack.
    pub(super) fn init(channel: &Channel, direction: Direction) -> impl Init<Self> {
        let entrance = channel.entrance().clone();
        init!(Self {
            buffers: entrance.ways().clone(),
            entrance,
            direction,
            numbers <- init_array_from_fn(|_| SharedWord::new(NOT_RECORDED)),
        })
    }

    /// Whether it records into `channel`.
    pub(crate) fn is_of(&self, channel: &Channel) -> bool {
        Arc::ptr_eq(&self.entrance, channel.entrance())
    }

    /// Entries or exits.
    pub(crate) fn direction(&self) -> Direction {
        self.direction
    }

    /// Records exactly these calls from now on. One caller at a time.
    pub(crate) fn select(&self, calls: &Numbers) {
        for (word, &number) in self.numbers.iter().zip(&calls.0) {
            word.store(number);
        }
    }

    /// Whether no call is recorded.
    pub(crate) fn is_unused(&self) -> bool {
        self.numbers
            .iter()
            .all(|number| number.load() == NOT_RECORDED)
    }

    /// The number of the event of the call in `slot`, if that is recorded.
    #[inline(always)]
    pub(super) fn number(&self, slot: u32) -> Option<u32> {
        let number = self.numbers.get(slot as usize)?.load();
        (number != NOT_RECORDED).then_some(number as u32)
    }

    /// Where records of the event with this number go of which nothing is known but their tail.
    #[inline(always)]
    pub(super) fn destination(&self, number: u32) -> Destination<'_> {
        Destination {
            buffers: &self.buffers,
            entrance: &self.entrance,
            label: Label::in_layout(number, self.entrance.layout()),
        }
    }

    #[inline(always)]
    fn record<F: Format>(&self, id: u32, record: Record<'_>) {
        let entered = match self.buffers.enter() {
            Ok(entered) => entered,
            Err(waiting) => {
                let Record {
                    plan,
                    registers,
                    pieces,
                } = record;
                return admit::<F>(waiting, self, id, plan, registers, pieces);
            }
        };
        let recorded = Buffer::record_open::<F, _>(
            entered,
            &Label::new::<F::Header>(id),
            #[inline(always)]
            || tail_alone(&record),
        );
        if let Err(entered) = recorded {
            let Record {
                plan,
                registers,
                pieces,
            } = record;
            record_any::<F>(entered, id, plan, registers, pieces);
        }
    }

    /// With what its arguments point to; before preemption is disabled, for this may sleep.
    #[cold]
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn record_with_pieces<F: Format>(
        &self,
        id: u32,
        slot: u32,
        plans: &Plans,
        registers: &Registers,
    ) {
        let Some(plan) = plans.get(slot) else {
            return;
        };
        let pieces = plans.copy(slot, registers);
        // That may have taken as long as another process liked.
        if self.number(slot) != Some(id) {
            return;
        }
        let pieces = pieces.bytes();
        self.record::<F>(
            id,
            Record {
                plan,
                registers,
                pieces,
            },
        );
    }
}

// These take what the probe has got, in registers.
#[cold]
#[inline(never)]
#[link_section = ".kprobes.text"]
fn admit<F: Format>(
    waiting: Waiting<'_>,
    probe: &SyscallProbe,
    id: u32,
    plan: &Plan,
    registers: &Registers,
    pieces: &[u8],
) {
    let least = F::Header::SHORT.wrapping_add(plan.least());
    if let Some(entered) = probe.entrance.admit(waiting, least) {
        record_any::<F>(entered, id, plan, registers, pieces);
    }
}

#[cold]
#[inline(never)]
fn record_any<F: Format>(
    entered: Entered<'_>,
    id: u32,
    plan: &Plan,
    registers: &Registers,
    pieces: &[u8],
) {
    let record = Record {
        plan,
        registers,
        pieces,
    };
    Buffer::record_any::<F, _>(
        entered,
        &Label::new::<F::Header>(id),
        #[inline(always)]
        || tail_alone(&record),
    );
}

/// The handler for a trace that is set up so. Its tracepoint calls it where page faults and sleep
/// are allowed.
pub(crate) fn handler(direction: Direction, setup: &Setup) -> Handler<SyscallProbe> {
    match direction {
        Direction::Entry => ENTER.select(setup),
        Direction::Exit => EXIT.select(setup),
    }
}

const ENTER: Handlers<SyscallProbe> =
    handlers!([registers number], enter, bindings::__traceiter_sys_enter);
const EXIT: Handlers<SyscallProbe> =
    handlers!([registers result], exit, bindings::__traceiter_sys_exit);

// Kprobes stay out: one on a probe could fire the probe.
#[link_section = ".kprobes.text"]
extern "C" fn enter<F: Format>(probe: &SyscallProbe, registers: &Registers, _number: isize) {
    let slot = plan::slot(registers.number(), Task::current().is_in_compat_call());
    let Some(id) = probe.number(slot) else {
        return;
    };
    let Some(plan) = plan::ENTRY.get(slot) else {
        return;
    };
    if plan.pieces != 0 {
        return probe.record_with_pieces::<F>(id, slot, &plan::ENTRY, registers);
    }
    probe.record::<F>(
        id,
        Record {
            plan,
            registers,
            pieces: &[],
        },
    );
}

#[link_section = ".kprobes.text"]
extern "C" fn exit<F: Format>(probe: &SyscallProbe, registers: &Registers, _result: isize) {
    let slot = plan::slot(registers.number(), Task::current().is_in_compat_call());
    let Some(id) = probe.number(slot) else {
        return;
    };
    let Some(plan) = plan::EXIT.get(slot) else {
        return;
    };
    if plan.pieces != 0 {
        return probe.record_with_pieces::<F>(id, slot, &plan::EXIT, registers);
    }
    probe.record::<F>(
        id,
        Record {
            plan,
            registers,
            pieces: &[],
        },
    );
}
