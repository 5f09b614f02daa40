// SPDX-License-Identifier: GPL-2.0

//! Which contexts a channel records.

use super::stacks::StackChoice;
use super::{Choice, Load, Moment, Stacks};
use crate::abi::schema::Field;
use crate::record::memory::{RecordWriter, Space};
use crate::sys::args::Task;
use kernel::prelude::*;

/// Contexts and call stacks, each at most once.
pub(crate) struct ContextSet {
    /// In the order in which they were chosen.
    chosen: KVec<Choice>,
    /// All but the stacks together in a record.
    bytes: usize,
    /// How they are got that lie in the task.
    loads: KVec<Load>,
    stacks: StackChoice,
}

impl ContextSet {
    /// None.
    pub(crate) const NONE: Self = Self {
        chosen: KVec::new(),
        bytes: 0,
        loads: KVec::new(),
        stacks: StackChoice {
            kernel: false,
            user: false,
        },
    };

    /// Adds one, if it is not there.
    pub(crate) fn add(&mut self, choice: Choice) -> Result {
        if self.chosen.contains(&choice) {
            return Ok(());
        }
        match choice {
            Choice::Context(context) => {
                if let Some(load) = context.load() {
                    self.loads.push(load, GFP_KERNEL)?;
                }
                self.bytes += context.ty().size().unwrap_or(0);
            }
            Choice::KernelStack => self.stacks.kernel = true,
            Choice::UserStack => self.stacks.user = true,
        }
        Ok(self.chosen.push(choice, GFP_KERNEL)?)
    }

    /// Those in it, in the order in which they were chosen.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Choice> + Clone + '_ {
        self.chosen.iter().copied()
    }

    /// Whether none is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.chosen.is_empty()
    }

    /// They, as fields, in the order of the record: contexts as they were chosen, then the kernel's
    /// stack and the user's.
    pub(crate) fn fields(&self) -> impl Iterator<Item = Field<'static>> + Clone + '_ {
        let rank = |choice| match choice {
            Choice::Context(_) => 0,
            Choice::KernelStack => 1,
            Choice::UserStack => 2,
        };
        let those = move |wanted| self.iter().filter(move |choice| rank(*choice) == wanted);
        (0..=2).flat_map(those).flat_map(Choice::fields)
    }

    /// Bytes in a record of all but the stacks.
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

    /// Whether a stack is in it.
    #[inline(always)]
    pub(crate) fn has_stacks(&self) -> bool {
        self.stacks.kernel || self.stacks.user
    }

    /// The stacks that are in it, not taken yet.
    #[inline(always)]
    pub(crate) fn stacks(&self) -> Stacks {
        Stacks::new(self.stacks)
    }

    /// Lays down what they are now, but for the stacks. Any context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(crate) fn write<'a>(&self, mut space: Space<'a>, now: &Moment<'_>) -> Space<'a> {
        for choice in &self.chosen {
            if let Choice::Context(context) = choice {
                context.write(&mut space, now);
            }
        }
        space
    }
}
