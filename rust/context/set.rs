// SPDX-License-Identifier: GPL-2.0

//! Which contexts a channel records.

use super::{Context, Load, Value};
use crate::abi::schema::Field;
use crate::arch::preempt::NoPreempt;
use crate::record::memory::{RecordWriter, Space};
use crate::sys::args::Task;
use kernel::prelude::*;

/// Contexts, each at most once, in the order in which they were chosen.
pub(crate) struct ContextSet {
    chosen: KVec<Context>,
    /// All together in a record.
    bytes: usize,
    /// How they are got that lie in the task.
    loads: KVec<Load>,
}

impl ContextSet {
    /// None.
    pub(crate) const NONE: Self = Self {
        chosen: KVec::new(),
        bytes: 0,
        loads: KVec::new(),
    };

    /// Adds one, if it is not there.
    pub(crate) fn add(&mut self, context: Context) -> Result {
        if !self.chosen.contains(&context) {
            if let Some(load) = context.load() {
                self.loads.push(load, GFP_KERNEL)?;
            }
            self.chosen.push(context, GFP_KERNEL)?;
            self.bytes += context.ty().size().unwrap_or(0);
        }
        Ok(())
    }

    /// Those in it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Context> + '_ {
        self.chosen.iter().copied()
    }

    /// Whether none is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.chosen.is_empty()
    }

    /// They, as fields, in the order of the record.
    pub(crate) fn fields(&self) -> impl Iterator<Item = Field<'static>> + '_ {
        self.iter().map(Context::field)
    }

    /// Bytes in a record.
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

    /// Lays down what they are now. Any context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(crate) fn write(&self, space: &mut Space<'_>, guard: &NoPreempt) {
        for context in self.iter() {
            match context.now(guard) {
                Value::Signed(value) => space.put(value),
                Value::Unsigned(value) => space.put(value),
                Value::Text(value) => space.put(value),
            }
        }
    }
}
