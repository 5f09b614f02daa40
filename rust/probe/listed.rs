// SPDX-License-Identifier: GPL-2.0

//! List of the probes of an event without tracepoint. The event's source iterates over it.

use super::Probe;
use crate::arch::preempt::NoPreempt;
use crate::record::memory::{Payload, RecordWriter, Tail};
use crate::sys::args::{Registers, Task};
use crate::sys::rcu::{RcuArc, Retired};
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// The fields of an event, all of fixed size.
pub(crate) trait FixedFields: Payload {
    /// Returns the number at an offset, if a field is one.
    fn number(&self, at: usize) -> Option<u64>;
}

/// Entries that were removed from lists. The drop waits once until none of their probes runs. May sleep.
pub(crate) type Removed = Retired<ListedProbe>;

/// The most bytes of fields of fixed size.
const FIXED_MAX: usize = 128;

/// The probes of an event.
#[pin_data]
pub(crate) struct ListedProbes {
    first: RcuArc<ListedProbe>,
    /// Held during a change of the list.
    #[pin]
    changing: Mutex<()>,
}

/// An entry of the list: the probe of a channel, a map or a trigger.
pub(crate) struct ListedProbe {
    probe: Arc<Probe>,
    next: RcuArc<ListedProbe>,
}

impl ListedProbes {
    /// An empty list. May sleep.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            first: RcuArc::new(),
            changing <- new_mutex!(()),
        })
    }

    /// Adds a probe at the place of its rank. May sleep.
    pub(crate) fn attach(&self, probe: Arc<Probe>) -> Result {
        let _changing = self.changing.lock();
        let mut before: Option<Arc<ListedProbe>> = None;
        loop {
            let place = before.as_ref().map_or(&self.first, |before| &before.next);
            match place.get_arc() {
                Some(known) if known.probe.rank() <= probe.rank() => before = Some(known),
                after => {
                    let next = RcuArc::new();
                    next.replace(after);
                    place.replace(Some(Arc::new(ListedProbe { probe, next }, GFP_KERNEL)?));
                    return Ok(());
                }
            }
        }
    }

    /// Removes a probe, which may run until `removed` is dropped. May sleep.
    pub(crate) fn detach(&self, probe: &Probe, removed: &mut Removed) {
        let _changing = self.changing.lock();
        let mut before: Option<Arc<ListedProbe>> = None;
        loop {
            let place = before.as_ref().map_or(&self.first, |before| &before.next);
            let Some(listed) = place.get_arc() else {
                return;
            };
            if core::ptr::eq(&*listed.probe, probe) {
                return place.replace_later(listed.next.get_arc(), removed);
            }
            before = Some(listed);
        }
    }

    /// Whether the list has a probe. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn is_any(&self, guard: &NoPreempt) -> bool {
        self.first.get(guard).is_some()
    }

    /// Whether the list has a probe that `is_picked` selects. Any context, NMI included.
    pub(crate) fn has_any(&self, is_picked: impl Fn(&Probe) -> bool, guard: &NoPreempt) -> bool {
        let mut next = self.first.get(guard);
        while let Some(ListedProbe { probe, next: after }) = next {
            if is_picked(probe) {
                return true;
            }
            next = after.get(guard);
        }
        false
    }

    /// Records an event with the fields `record` in the selected probes, whatever the current CPU is; fires
    /// triggers. Context: process, interrupts on.
    pub(crate) fn handle_where(
        &self,
        record: &impl Tail,
        is_picked: impl Fn(&Probe) -> bool,
        guard: &NoPreempt,
    ) {
        let mut next = self.first.get(guard);
        while let Some(ListedProbe { probe, next: after }) = next {
            if probe.trigger().is_some() || is_picked(probe) {
                probe.handle_anywhere(record, guard);
            }
            next = after.get(guard);
        }
    }

    /// Records an event with the fields `record` in all probes. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn handle(&self, record: &impl Tail, guard: &NoPreempt) {
        self.for_each(
            guard,
            #[inline(always)]
            |probe| probe.handle_tail(record, guard),
        );
    }

    /// The same with fields of fixed size: [`FIXED_MAX`] bytes at most. `about` is the task that the event is
    /// about. `make` returns the fields; it is called for each probe, so that none need be kept.
    #[inline(always)]
    pub(crate) fn handle_fields<T: FixedFields>(
        &self,
        about: Option<&Task>,
        make: impl Fn() -> T + Copy,
        guard: &NoPreempt,
    ) {
        const { assert!(size_of::<T>() <= FIXED_MAX) };
        self.for_each(
            guard,
            #[inline(always)]
            |probe| {
                probe.handle::<FIXED_MAX, _>(
                    1,
                    about,
                    #[inline(always)]
                    |at| make().number(at),
                    #[inline(always)]
                    || {
                        (
                            size_of::<T>() as u64,
                            #[inline(always)]
                            move |to: RecordWriter<'_>| to.put(make()).put_tail(&()),
                        )
                    },
                )
            },
        );
    }

    /// The same where code was stopped with these registers: its call stack is recorded, not that of the caller.
    /// The fields have at most `LONGEST` bytes.
    #[inline(always)]
    pub(crate) fn handle_interrupted<const LONGEST: usize>(
        &self,
        record: &impl Tail,
        registers: &Registers,
        guard: &NoPreempt,
    ) {
        self.for_each(
            guard,
            #[inline(always)]
            |probe| match probe.has_calls() {
                true => probe.handle_interrupted::<LONGEST, _>(record, registers, guard),
                false => probe.handle_tail(record, guard),
            },
        );
    }

    /// Calls `each` with all probes, in their order. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn for_each(&self, guard: &NoPreempt, each: impl Fn(&Probe)) {
        let mut next = self.first.get(guard);
        while let Some(ListedProbe { probe, next: after }) = next {
            each(probe);
            next = after.get(guard);
        }
    }
}
