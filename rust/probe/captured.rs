// SPDX-License-Identifier: GPL-2.0

//! Probes that look at an event before they record it: at its task, its fields, its contexts ([`Look`]).
//!
//! An event has one handler that looks, for all event headers and clocks. If the probe looks from the beginning,
//! that handler is attached. If the probe begins to look later, the handler of its format stays attached. The gate
//! then stops the handler of the format, which calls the handler that looks.
//!
//! The first word of a function's name says what the function does:
//!
//! | name | action |
//! | --- | --- |
//! | `handle` | decides whether the event is wanted; if it is, acts on it |
//! | `begin`, `end` | the same in two parts, for an event that another module writes |
//! | `wants` | decides, and does nothing else |
//! | `act` | records a wanted event, fires the trigger, or updates the map |
//! | `record` | tries to write a wanted event directly into the buffer; returns whether it did |
//!
//! The rest of the name says for which events:
//!
//! | name | events |
//! | --- | --- |
//! | `_any` | all; a function of its own, off the common path |
//! | `_list` | with a list of contexts |
//! | `_tail` | with fields of any size, about no task |
//! | `_captured` | whose fields were captured: written to the stack, because a filter or a map needs them |
//! | `_decided` | captured, and a first look has not refused them |
//! | `_interrupted` | of interrupted code, whose call stack is recorded |
//! | `_anywhere`, `_elsewhere` | recorded on another CPU if this one is not recorded; always on another CPU |

mod anywhere;
pub(crate) mod filling;
mod interrupted;

use super::filter::Filter;
use super::map::MapAtEvent;
use super::{Destination, Probe, Recorder, Sink};
use crate::arch::preempt::NoPreempt;
use crate::channel::Buffer;
use crate::context::{ContextSet, KernelCalls, Moment};
use crate::filter::program::Decision;
use crate::record::format::CompactTsc;
use crate::record::memory::{tail_alone, Capture, Captured, RecordWriter, Space, Tail};
use crate::sys::args::Task;
use crate::sys::rcu::Retired;
use crate::sys::stack::StackStart;
use kernel::sync::Arc;

/// Maximum size of a captured record whose size is known only at run time.
pub(crate) const LONGEST: usize = 1024;

/// Bits that say what a probe looks at before it records.
pub(super) struct Look;

impl Look {
    /// The task of the event: only some tasks are recorded.
    pub(super) const TASKS: u64 = 1 << 0;
    /// The record's fields: there is a filter.
    pub(super) const FIELDS: u64 = 1 << 1;
    /// Contexts. They are written directly into the record, unless [`CALLS`](Self::CALLS) is set.
    pub(super) const CONTEXTS: u64 = 1 << 2;
    /// Contexts that cannot be written directly into the record.
    pub(super) const CALLS: u64 = 1 << 3;
    /// The record format is not the default one, [`CompactTsc`].
    pub(super) const FORMAT: u64 = 1 << 4;
    /// The cgroups of the current task and of the tasks that the event is about.
    pub(super) const CGROUP: u64 = 1 << 5;
    /// The probe is for a trigger or a map, and records nothing.
    pub(super) const NO_RECORD: u64 = 1 << 6;
    /// The probe is disabled: no event is wanted.
    pub(super) const NOTHING: u64 = 1 << 7;
    /// Contexts that are written in a loop.
    pub(super) const LIST: u64 = 1 << 8;
    /// The bits that can refuse an event before its fields are read.
    const EARLY: u64 = Self::TASKS | Self::CGROUP | Self::NOTHING;
    /// The bits that only [`Probe::handle_any`] handles.
    pub(super) const LATER: u64 =
        Self::CALLS | Self::FORMAT | Self::CGROUP | Self::NO_RECORD | Self::NOTHING;
}

impl Probe {
    /// Replaces the filter. If a set of tasks exists by now, the probe also examines tasks from now on. May
    /// sleep. One caller at a time.
    ///
    /// An event that fires during the change sees the state before it or the state after it, and is recorded
    /// at most once.
    pub(crate) fn set_filter(&self, filter: Option<&Arc<Filter>>, retired: &mut Retired<Filter>) {
        self.filter.replace_later(filter.cloned(), retired);
        // `TASKS` and `CGROUP` stay set, because removing a set of tasks can be rolled back. `NOTHING` stays set,
        // because a new filter does not enable the probe.
        self.look_again(Look::TASKS | Look::CGROUP | Look::NOTHING);
    }

    /// Examines tasks from now on, if a set of them exists by now. One caller at a time.
    pub(crate) fn choose_tasks(&self) {
        self.look_again(Look::TASKS | Look::CGROUP | Look::NOTHING);
    }

    /// Enables the probe, or disables it while handlers may still call it. One caller at a time.
    pub(crate) fn set_live(&self, live: bool) {
        match (self.is_live(), live) {
            (false, true) => self.look_again(0),
            (true, false) => self.set_look(Look::NOTHING),
            _ => {}
        }
    }

    /// Whether the probe looks at anything before it records. If it does, the handler for captured records is
    /// cheaper than a format's handler, which would be stopped at the gate first.
    #[inline(always)]
    pub(crate) fn looks(&self) -> bool {
        self.look.load() & !Look::FORMAT != 0
    }

    /// Computes [`Look`] anew; bits of `kept` that are set stay set. One caller at a time.
    pub(super) fn look_again(&self, kept: u64) {
        let mut look = match &self.sink {
            Sink::Recorder(recorder) if recorder.entrance.has_usual_format() => 0,
            Sink::Recorder(_) => Look::FORMAT,
            Sink::Trigger(_) | Sink::Map(_) => Look::NO_RECORD,
        };
        if self.tasks.has_sets() {
            look |= Look::TASKS;
        }
        if self.tasks.has_cgroups() {
            look |= Look::CGROUP;
        }
        if !self.contexts.is_empty() {
            look |= Look::CONTEXTS;
        }
        if !self.contexts.is_empty() && self.contexts.start().is_none() {
            look |= Look::CALLS;
        }
        if self.start.is_list() {
            look |= Look::LIST;
        }
        if self.filter.get(&NoPreempt::new()).is_some() {
            look |= Look::FIELDS;
        }
        self.set_look(look | self.look.load() & kept);
    }

    fn set_look(&self, look: u64) {
        self.look.store(look);
        self.route.divert(self.looks());
    }

    /// Whether the probe is enabled. Any context, NMI included.
    pub(crate) fn is_live(&self) -> bool {
        self.look.load() & Look::NOTHING == 0
    }

    /// Decides whether an event is wanted, by the checks in `look`: bits of [`Look`]. If the filter needs more than one
    /// number, the event is undecided; [`wants_record`](Self::wants_record) then decides. Any context, NMI included.
    /// - `about` returns the id of the task that the event is about, as in ftrace.
    /// - `tasks` are the tasks whose cgroups count.
    /// - `number` returns the number at an offset of the fields.
    #[inline(always)]
    pub(super) fn wants(
        &self,
        look: u64,
        about: impl FnOnce() -> Option<i32>,
        tasks: &[Option<&Task>],
        number: impl FnOnce(usize) -> Option<u64>,
    ) -> Decision {
        if look & Look::EARLY != 0
            && (look & Look::NOTHING != 0
                || look & Look::TASKS != 0 && !self.is_of_wanted_task(about)
                || look & Look::CGROUP != 0 && !self.is_of_wanted_cgroup(tasks))
        {
            return Decision::Refused;
        }
        if look & Look::FIELDS == 0 {
            return Decision::Accepted;
        }
        let guard = NoPreempt::new();
        match self.filter.get(&guard) {
            Some(filter) => filter.decides(number),
            None => Decision::Accepted,
        }
    }

    /// As [`wants`](Self::wants), before the fields are known.
    #[inline(always)]
    fn wants_unread(&self, look: u64) -> Decision {
        self.wants(look, || None, &[], |_| None)
    }

    /// Whether the filter, if there is one, accepts an event with these fields. Any context, NMI included.
    #[inline(always)]
    pub(super) fn wants_record(&self, fields: Captured<'_>, now: Moment<'_>) -> bool {
        let mut filter = self.filter.get(now.guard).into_iter();
        filter.all(|filter| filter.wants(fields, now))
    }

    /// Returns false if the probe refuses all events of the current task. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn wants_current_task(&self) -> bool {
        !self.looks() || self.looks_at_current_task()
    }

    /// As [`wants_current_task`](Self::wants_current_task), if the probe looks at anything.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn looks_at_current_task(&self) -> bool {
        self.wants_unread(self.look.load()) != Decision::Refused
    }

    /// Handles an event, as [`handle_or`](Self::handle_or). The event is about the task `about`. The
    /// caller holds `guards` [`NoPreempt`] guards.
    #[inline(always)]
    pub(crate) fn handle<const N: usize, W: FnOnce(RecordWriter<'_>) + Copy>(
        &self,
        guards: u32,
        about: Option<&Task>,
        number: impl FnOnce(usize) -> Option<u64>,
        payload: impl Fn() -> (u64, W),
    ) {
        self.handle_or(
            #[inline(always)]
            || about.map(Task::tid),
            number,
            &payload,
            #[inline(always)]
            || {
                let (len, write) = payload();
                self.handle_list_apart::<N>(guards, len, write);
            },
            #[inline(always)]
            || {
                let (len, write) = payload();
                self.handle_any::<N>(guards, &[about], len, write);
            },
        );
    }

    /// Handles an event. Any context, NMI included. The functions of the caller return:
    /// - `about`: the id of the task that the event is about;
    /// - `number`: the number at an offset of the fields;
    /// - `payload`: the size of the fields, and a function that writes them.
    ///
    /// A filter that compares one number reads only that field. Writing the record reads the field again.
    ///
    /// The work that takes many registers is in two closures of the caller, which have the caller's arguments. They
    /// must call the functions of the same names: [`handle_list`](Self::handle_list) and
    /// [`handle_any`](Self::handle_any).
    #[inline(always)]
    pub(crate) fn handle_or<W: FnOnce(RecordWriter<'_>)>(
        &self,
        about: impl FnOnce() -> Option<i32>,
        number: impl FnOnce(usize) -> Option<u64>,
        payload: impl Fn() -> (u64, W),
        handle_list: impl FnOnce(),
        handle_any: impl Fn(),
    ) {
        let look = self.look.load();
        if look != Look::CONTEXTS {
            match self.wants(look & (Look::TASKS | Look::FIELDS), about, &[], number) {
                Decision::Accepted => {}
                Decision::Refused => return,
                Decision::Undecided => return handle_any(),
            }
            if look & (Look::LATER | Look::LIST | Look::CONTEXTS) == 0 {
                let (len, write) = payload();
                if !self.record_at_once(len, write) {
                    handle_any();
                }
                return;
            }
            if look & Look::LATER != 0 {
                return handle_any();
            }
            if look & Look::LIST != 0 {
                return handle_list();
            }
        }
        let (len, write) = payload();
        let recorded = self.record_with_contexts(
            len,
            write,
            #[inline(always)]
            |to, guard| self.start.write(to, guard),
        );
        if !recorded {
            handle_any();
        }
    }

    /// As [`handle_list`](Self::handle_list). A separate function, so that a probe without a list does not save
    /// the registers that a list needs.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn handle_list_apart<const N: usize>(
        &self,
        guards: u32,
        len: u64,
        write: impl FnOnce(RecordWriter<'_>) + Copy,
    ) {
        self.handle_list::<N>(guards, len, write);
    }

    /// Records a wanted event with a list of contexts that can be written directly into the record.
    #[inline(always)]
    pub(crate) fn handle_list<const N: usize>(
        &self,
        guards: u32,
        len: u64,
        write: impl FnOnce(RecordWriter<'_>) + Copy,
    ) {
        if !self.record_with_list(guards, len, write) {
            self.handle_any::<N>(guards, &[], len, write);
        }
    }

    /// Handles an event of a wanted task, about the tasks `about`.
    #[cold]
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(crate) fn handle_any<const N: usize>(
        &self,
        guards: u32,
        about: &[Option<&Task>],
        len: u64,
        write: impl FnOnce(RecordWriter<'_>),
    ) {
        // This check is here, so that probes without cgroups do not pay for it.
        let look = self.look.load() & (Look::CGROUP | Look::NOTHING);
        if self.wants(look, || None, about, |_| None) == Decision::Refused {
            return;
        }
        // On the stack, this is the module's outermost function, or the outermost one has called it.
        let stack = StackStart::here();
        if let Some(fields) = Capture::<N>::new().fill(len, write) {
            self.handle_captured(fields, guards, stack);
        }
    }

    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn handle_captured(&self, fields: Captured<'_>, guards: u32, stack: StackStart<'_>) {
        let guard = NoPreempt::new();
        let now = Moment::new(&guard, guards.wrapping_add(1)).with_stack(stack);
        self.handle_decided(fields, Decision::Undecided, now);
    }

    /// Handles an event that is about no task. With a filter, an event of more than [`LONGEST`] bytes is lost and
    /// counted. The caller must hold no other [`NoPreempt`] guard than `guard`, because this passes a guard count of
    /// 1 to [`Moment`]. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn handle_tail<T: Tail>(&self, fields: &T, guard: &NoPreempt) {
        let look = self.look.load();
        match self.wants_unread(look) {
            Decision::Accepted if self.record_without_calls(1, look, fields) => {}
            Decision::Accepted => self.act(fields, Moment::new(guard, 1)),
            Decision::Refused => {}
            Decision::Undecided => self.handle_tail_any(fields, guard),
        }
    }

    /// Records a wanted event, if that needs no calls and no other format. Returns whether it did.
    #[inline(always)]
    fn record_without_calls<T: Tail>(&self, guards: u32, look: u64, fields: &T) -> bool {
        let (len, write) = tail_alone(fields);
        match look & (Look::CONTEXTS | Look::LATER) {
            0 => self.record_at_once(len, write),
            Look::CONTEXTS => self.record_with_list(guards, len, write),
            _ => false,
        }
    }

    /// As [`handle_tail`](Self::handle_tail), for all cases.
    #[cold]
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn handle_tail_any<T: Tail>(&self, fields: &T, guard: &NoPreempt) {
        let (len, write) = tail_alone(fields);
        match Capture::<LONGEST>::new().fill(len, write) {
            Some(fields) => match self.wants_captured(fields) {
                Decision::Refused => {}
                decided if self.record_captured(1, fields, decided) => {}
                decided => self.handle_decided(fields, decided, Moment::new(guard, 1)),
            },
            None => self.count_too_large(),
        }
    }

    /// As [`wants`](Self::wants), for captured fields of a wanted task.
    #[inline(always)]
    fn wants_captured(&self, fields: Captured<'_>) -> Decision {
        self.wants(Look::FIELDS, || None, &[], |at| fields.number(at))
    }

    /// As [`record_without_calls`](Self::record_without_calls), for captured fields. Returns false if the event is not
    /// accepted yet.
    #[inline(always)]
    fn record_captured(&self, guards: u32, fields: Captured<'_>, decided: Decision) -> bool {
        let fields = Bytes(fields.fields());
        decided == Decision::Accepted
            && self.record_without_calls(guards, self.look.load(), &fields)
    }

    /// Handles captured fields that a first look at the filter accepted, or left undecided.
    #[inline(always)]
    fn handle_decided(&self, fields: Captured<'_>, decided: Decision, now: Moment<'_>) {
        if decided == Decision::Accepted || self.wants_record(fields, now) {
            let fields = fields.fields();
            self.act_or_update(
                &Bytes(fields),
                now,
                #[inline(always)]
                |map| map.update(fields, now),
            );
        }
    }

    /// Counts a record that was too large to capture.
    #[cold]
    fn count_too_large(&self) {
        match &self.sink {
            Sink::Recorder(recorder) => self.destination(recorder).count_too_large(),
            Sink::Trigger(_) => {}
            Sink::Map(map) => map.count_lacking(&NoPreempt::new()),
        }
    }

    #[inline(always)]
    fn act<T: Tail>(&self, fields: &T, now: Moment<'_>) {
        self.act_or_update(
            fields,
            now,
            #[inline(always)]
            |map| map.update_tail(fields, now),
        );
    }

    /// As [`act`](Self::act); `update` updates the map, if the probe has one.
    #[inline(always)]
    fn act_or_update<T: Tail>(
        &self,
        fields: &T,
        now: Moment<'_>,
        update: impl FnOnce(&MapAtEvent),
    ) {
        match &self.sink {
            Sink::Recorder(recorder) => WithContexts {
                contexts: &self.contexts,
                now,
                fields,
            }
            .record(self.destination(recorder)),
            Sink::Trigger(trigger) => trigger.fire(now),
            Sink::Map(map) => update(map),
        }
    }

    /// Records an event in the default format without contexts, if the gate is open and the record fits into
    /// the open packet. Returns whether it did.
    #[inline(always)]
    fn record_at_once(&self, len: u64, write: impl FnOnce(RecordWriter<'_>)) -> bool {
        let Ok(entered) = self.route.direct().enter() else {
            return false;
        };
        let recorded = Buffer::record_open::<CompactTsc, _>(
            entered,
            &self.label,
            #[inline(always)]
            || (len, write),
        );
        recorded.is_ok()
    }

    /// As [`record_at_once`](Self::record_at_once), with contexts, which `write_contexts` writes.
    #[inline(always)]
    fn record_with_contexts(
        &self,
        len: u64,
        write: impl FnOnce(RecordWriter<'_>),
        write_contexts: impl FnOnce(RecordWriter<'_>, &NoPreempt),
    ) -> bool {
        let Ok(entered) = self.route.direct().enter() else {
            return false;
        };
        let whole = || len.wrapping_add(self.start.len() as u64);
        let recorded = Buffer::record_open_guarded::<CompactTsc, _>(
            entered,
            &self.label,
            #[inline(always)]
            || {
                (
                    whole(),
                    #[inline(always)]
                    move |to: RecordWriter<'_>, guard: &NoPreempt| {
                        // The fields are written first, so that their sources need not be kept.
                        let (to, fields) = to.split(self.start.len());
                        write(fields);
                        write_contexts(to, guard);
                    },
                )
            },
            #[inline(always)]
            || Some(whole()),
        );
        recorded.is_ok()
    }

    /// As [`record_at_once`](Self::record_at_once), with a list of contexts.
    #[inline(always)]
    fn record_with_list(
        &self,
        guards: u32,
        len: u64,
        write: impl FnOnce(RecordWriter<'_>),
    ) -> bool {
        self.record_with_contexts(
            len,
            write,
            #[inline(always)]
            |to, guard| {
                let now = Moment::new(guard, guards).inside();
                self.contexts.write_at_once(&self.start, to, &now);
            },
        )
    }

    /// Whether the current task or the task that the event is about is wanted, as in ftrace. Triggers ignore
    /// tasks.
    #[inline(always)]
    fn is_of_wanted_task(&self, about: impl FnOnce() -> Option<i32>) -> bool {
        let guard = NoPreempt::new();
        self.tasks.wants(Task::current().tid(), &guard)
            || about().is_some_and(|tid| self.tasks.wants(tid, &guard))
    }

    /// Whether the cgroup of the current task is wanted, as in BPF and perf, or that of a task that the event is about.
    /// Triggers ignore cgroups.
    #[inline(always)]
    fn is_of_wanted_cgroup(&self, about: &[Option<&Task>]) -> bool {
        self.tasks.wants_cgroup(about, &NoPreempt::new())
    }
}

/// A channel's contexts, followed by an event's fields.
pub(crate) struct WithContexts<'a, T> {
    pub(crate) contexts: &'a ContextSet,
    /// The moment of the event. Its number of guards does not include the guard of the buffer's gate.
    pub(crate) now: Moment<'a>,
    pub(crate) fields: &'a T,
}

impl<T: Tail> WithContexts<'_, T> {
    /// Records contexts and fields, and calls the kernel if a context requires it.
    #[inline(always)]
    pub(crate) fn record(&self, to: Destination<'_>) {
        if self.contexts.has_calls() {
            return self.record_with_calls(to);
        }
        to.record(self);
    }

    /// Writes contexts and fields to `room`, to be recorded on another CPU. [`None`]: the room is too small.
    #[inline(always)]
    pub(crate) fn capture<'r, const N: usize>(
        &self,
        room: &'r mut Capture<N>,
    ) -> Option<Captured<'r>> {
        let mut called = self.contexts.called();
        called.call(self.now);
        let all = WithCalled::new(self, &called);
        let (len, write) = tail_alone(&all);
        // `write_contexts` assumes that the gate's guard exists. Here this guard takes its place.
        let _guard = NoPreempt::new();
        room.fill(len, write)
    }

    #[inline(always)]
    fn write_contexts<'s>(&self, space: Space<'s>) -> Space<'s> {
        self.contexts.write(space, &self.now.inside())
    }

    /// Calls the kernel inside the gate. If the called code fires an event that also requires a call, the gate
    /// refuses that event. An event of a context that interrupts this code is not refused.
    #[cold]
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn record_with_calls(&self, to: Destination<'_>) {
        let called = &mut self.contexts.called();
        to.record_made(self.len(), move || {
            called.call(self.now);
            WithCalled::new(self, called)
        });
    }
}

impl<T: Tail> Tail for WithContexts<'_, T> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.contexts.len().wrapping_add(self.fields.len())
    }

    #[inline(always)]
    fn write(&self, space: Space<'_>) {
        self.fields.write(self.write_contexts(space));
    }
}

/// As [`WithContexts`], with the values of the contexts that require calls before the fields.
struct WithCalled<'a, T> {
    rest: &'a WithContexts<'a, T>,
    called: &'a KernelCalls<'a>,
    /// Size in bytes, which would take long to compute again.
    len: usize,
}

impl<'a, T: Tail> WithCalled<'a, T> {
    #[inline(always)]
    fn new(rest: &'a WithContexts<'a, T>, called: &'a KernelCalls<'a>) -> Self {
        let len = rest.len().wrapping_add(called.len());
        Self { rest, called, len }
    }
}

impl<T: Tail> Tail for WithCalled<'_, T> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn write(&self, space: Space<'_>) {
        let mut space = match self.rest.contexts.len() {
            0 => space,
            _ => self.rest.write_contexts(space),
        };
        self.called.write(&mut space);
        self.rest.fields.write(space);
    }
}

/// Captured fields.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl Tail for Bytes<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn write(&self, mut space: Space<'_>) {
        space.put_bytes(self.0);
    }
}
