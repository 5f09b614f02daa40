// SPDX-License-Identifier: GPL-2.0

//! Which contexts a channel records.

use super::called::CalledContexts;
use super::{ContextChoice, CounterKind, KernelCalls, Load, Moment, MAX_COUNTERS};
use crate::abi::schema::Field;
use crate::record::memory::{RecordWriter, Space};
use crate::sys::args::Task;
use crate::sys::counter::Counter;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Contexts, counters and call stacks, each at most once.
pub(crate) struct ContextSet {
    /// In the order in which they were chosen.
    chosen: KVec<ContextChoice>,
    /// The contexts together in a record.
    bytes: usize,
    /// How they are got that lie in the task.
    loads: KVec<Load>,
    calls: CalledContexts,
}

/// Why something is not added.
pub(crate) enum ContextRefusal {
    /// There is no room for so many counters.
    ManyCounters,
    /// There is no such counter here, or no memory.
    Error(Error),
}

impl<E: Into<Error>> From<E> for ContextRefusal {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

impl ContextSet {
    /// None.
    pub(crate) const NONE: Self = Self {
        chosen: KVec::new(),
        bytes: 0,
        loads: KVec::new(),
        calls: CalledContexts::NONE,
    };

    /// Adds one, if it is not there; a counter is `made`.
    pub(crate) fn add(
        &mut self,
        choice: ContextChoice,
        made: impl FnOnce(CounterKind) -> Result<Arc<Counter>>,
    ) -> Result<(), ContextRefusal> {
        if self.chosen.contains(&choice) {
            return Ok(());
        }
        match choice {
            ContextChoice::Context(context) => {
                if let Some(load) = context.load() {
                    self.loads.push(load, GFP_KERNEL)?;
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
            ContextChoice::UserStack => self.calls.user_stack = true,
        }
        Ok(self.chosen.push(choice, GFP_KERNEL)?)
    }

    /// Those in it, in the order in which they were chosen.
    pub(crate) fn iter(&self) -> impl Iterator<Item = ContextChoice> + Clone + '_ {
        self.chosen.iter().copied()
    }

    /// Whether none is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.chosen.is_empty()
    }

    /// The counter of this kind, if it is in it.
    pub(crate) fn counter(&self, kind: CounterKind) -> Option<Arc<Counter>> {
        let mut counters = self.calls.counters.iter();
        let (_, counter) = counters.find(|(known, _)| *known == kind)?;
        Some(counter.clone())
    }

    /// They, as fields, in the order of the record: contexts as they were chosen, counters as they
    /// were chosen, then the kernel's stack and the user's.
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

    /// Bytes in a record of the contexts.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Whether all lie in the task.
    pub(crate) fn is_in_task(&self) -> bool {
        self.loads.len() == self.chosen.len()
    }

    /// Lays down what those are now that lie in the task: all, [mostly](Self::is_in_task). Any
    /// context, NMI included.
    #[inline(always)]
    pub(crate) fn write_of_task<'a>(&self, mut to: RecordWriter<'a>) -> RecordWriter<'a> {
        let task: &Task = &Task::current();
        for load in &self.loads {
            to = match *load {
                Load::Number(number) => to.put(task.number(number)),
                Load::Comm => to.put(task.comm()),
            };
        }
        to
    }

    /// Whether the kernel must be called: a counter or a stack is in it.
    #[inline(always)]
    pub(crate) fn has_calls(&self) -> bool {
        self.calls.any()
    }

    /// What the kernel is called for, not called yet.
    #[inline(always)]
    pub(crate) fn called(&self) -> KernelCalls<'_> {
        KernelCalls::new(&self.calls)
    }

    /// Lays down what the contexts are now. Any context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(crate) fn write<'a>(&self, mut space: Space<'a>, now: &Moment<'_>) -> Space<'a> {
        for choice in &self.chosen {
            if let ContextChoice::Context(context) = choice {
                context.write(&mut space, now);
            }
        }
        space
    }
}
