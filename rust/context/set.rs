// SPDX-License-Identifier: GPL-2.0

//! The contexts that a channel records.

use super::called::CalledContexts;
use super::user_stack::UserStacks;
use super::{ContextChoice, CounterKind, KernelCalls, Load, Moment, ShortLoad, MAX_COUNTERS};
use crate::abi::schema::Field;
use crate::arch::preempt::NoPreempt;
use crate::record::memory::{RecordWriter, Space};
use crate::sys::args::{Task, TaskWord};
use crate::sys::counter::Counter;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Contexts, counters and call stacks, each at most once.
pub(crate) struct ContextSet {
    /// In the order of their selection.
    chosen: KVec<ContextChoice>,
    /// Size of the contexts in a record, in bytes.
    bytes: usize,
    /// The first context, if it is a field of the task: most sets begin with the thread's id.
    first: Option<TaskWord>,
    /// The loads of the other contexts.
    loads: KVec<Load>,
    calls: CalledContexts,
}

/// Reason why a context is not added.
pub(crate) enum ContextRefusal {
    /// There are too many counters.
    ManyCounters,
    /// The machine lacks this counter, or there is not enough memory.
    Error(Error),
}

impl<E: Into<Error>> From<E> for ContextRefusal {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

impl ContextSet {
    /// The empty set.
    pub(crate) const NONE: Self = Self {
        chosen: KVec::new(),
        bytes: 0,
        first: None,
        loads: KVec::new(),
        calls: CalledContexts::NONE,
    };

    /// Adds a context that is not in the set. `made` creates a counter.
    pub(crate) fn add(
        &mut self,
        choice: ContextChoice,
        made: impl FnOnce(CounterKind) -> Result<Arc<Counter>>,
        stacks: &Arc<UserStacks>,
    ) -> Result<(), ContextRefusal> {
        if self.chosen.contains(&choice) {
            return Ok(());
        }
        match choice {
            ContextChoice::Context(context) => {
                match context.field_of_task() {
                    Some(word) if self.bytes == 0 => self.first = Some(word),
                    _ => self
                        .loads
                        .push(*context.load().ok_or(EINVAL)?, GFP_KERNEL)?,
                }
                self.bytes += context.ty().size().unwrap_or(0);
            }
            ContextChoice::Counter(_) if self.calls.counters.len() == MAX_COUNTERS => {
                return Err(ContextRefusal::ManyCounters);
            }
            ContextChoice::Counter(kind) => {
                self.calls.counters.push((kind, made(kind)?), GFP_KERNEL)?
            }
            ContextChoice::KernelStack => self.calls.kernel_stack = true,
            ContextChoice::UserStack => self.calls.user_stack = Some(stacks.begin_use()?),
        }
        Ok(self.chosen.push(choice, GFP_KERNEL)?)
    }

    /// The contexts, in the order of their selection.
    pub(crate) fn iter(&self) -> impl Iterator<Item = ContextChoice> + Clone + '_ {
        self.chosen.iter().copied()
    }

    /// Whether the set is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.chosen.is_empty()
    }

    /// The counter of this kind, if the set has it.
    pub(crate) fn counter(&self, kind: CounterKind) -> Option<Arc<Counter>> {
        let mut counters = self.calls.counters.iter();
        let (_, counter) = counters.find(|(known, _)| *known == kind)?;
        Some(counter.clone())
    }

    /// The fields of the contexts, in the order of the record: contexts in the order of their selection,
    /// counters likewise, then the kernel's stack and the user's.
    pub(crate) fn fields(&self) -> impl Iterator<Item = Field<'static>> + Clone + '_ {
        let rank = |choice| match choice {
            ContextChoice::Context(_) => 0,
            ContextChoice::Counter(_) => 1,
            ContextChoice::KernelStack => 2,
            ContextChoice::UserStack => 3,
        };
        let those = move |wanted| self.iter().filter(move |choice| rank(*choice) == wanted);
        (0..=3).flat_map(those).flat_map(ContextChoice::fields)
    }

    /// Size of the contexts in a record, in bytes.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Whether the kernel must be called, for a counter or a stack.
    #[inline(always)]
    pub(crate) fn has_calls(&self) -> bool {
        self.calls.any()
    }

    /// The contexts that require calls, before the calls.
    #[inline(always)]
    pub(crate) fn called(&self) -> KernelCalls<'_> {
        KernelCalls::new(&self.calls)
    }

    /// The start for writing the contexts [at once](Self::write_at_once); [`None`] if that is not possible.
    pub(crate) fn start(&self) -> Option<ContextStart> {
        if self.has_calls() || self.bytes < FIRST {
            return None;
        }
        let (number, is_list) = match &*self.loads {
            [] | [Load::Comm] => (None, false),
            [Load::Short(number)] => (Some(*number), false),
            _ => (None, true),
        };
        Some(ContextStart {
            bytes: self.bytes,
            first: self.first.unwrap_or(TaskWord::TID),
            first_bytes: self.first.map_or(0, |_| FIRST),
            has_second: !self.loads.is_empty(),
            number,
            is_list,
        })
    }

    /// Writes the current values of the contexts, whose start is `start`. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn write_at_once(
        &self,
        start: &ContextStart,
        to: RecordWriter<'_>,
        now: &Moment<'_>,
    ) {
        self.write_loads(start.write_first(to), now);
    }

    /// Writes the current values of the contexts. Any context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(crate) fn write<'a>(&self, mut space: Space<'a>, now: &Moment<'_>) -> Space<'a> {
        if let Some(to) = space.split_off(self.bytes) {
            let to = match self.first {
                Some(word) => to.put(Task::current().word(word)),
                None => to,
            };
            self.write_loads(to, now);
        }
        space
    }

    #[inline(always)]
    fn write_loads(&self, mut to: RecordWriter<'_>, now: &Moment<'_>) {
        for load in &self.loads {
            to = load.write(to, now);
        }
    }
}

/// The part of a set of contexts that each record needs. A probe has a copy, which saves loads.
#[derive(Clone, Copy)]
pub(crate) struct ContextStart {
    /// Bytes in a record.
    bytes: usize,
    /// The field of the task that is written first.
    first: TaskWord,
    /// Bytes of this field, or 0 if it is not the first context.
    first_bytes: usize,
    /// Whether there are other ones.
    has_second: bool,
    /// The only other context; [`None`] if that is the task's name.
    number: Option<ShortLoad>,
    /// Whether there are more contexts, or one that takes longer.
    is_list: bool,
}

impl ContextStart {
    /// The start for a set that is not written at once.
    pub(crate) const NONE: Self = Self {
        bytes: 0,
        first: TaskWord::TID,
        first_bytes: 0,
        has_second: false,
        number: None,
        is_list: false,
    };

    /// Bytes in a record.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Whether only [`ContextSet::write_at_once`] writes all.
    pub(crate) fn is_list(&self) -> bool {
        self.is_list
    }

    /// Writes a set that is no list: the commonest ones, which need no loop.
    #[inline(always)]
    pub(crate) fn write(&self, to: RecordWriter<'_>, guard: &NoPreempt) {
        let to = self.write_first(to);
        if self.has_second {
            match &self.number {
                Some(number) => number.write(to, guard),
                None => to.put(Task::current().comm()),
            };
        }
    }

    /// Writes the first context, if it is a field of the task. If not, the next one overwrites this.
    #[inline(always)]
    fn write_first<'a>(&self, to: RecordWriter<'a>) -> RecordWriter<'a> {
        to.put_here(Task::current().word(self.first));
        to.skip(self.first_bytes)
    }
}

/// Bytes of a field of a task.
const FIRST: usize = size_of::<i32>();
