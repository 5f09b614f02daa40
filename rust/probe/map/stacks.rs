// SPDX-License-Identifier: GPL-2.0

//! The call stacks that are keys of a map.

use crate::arch::word::{LocalWord, SharedWord};
use crate::context::user_stack::UserStacksUse;
use crate::context::Moment;
use crate::map::stacks::{NamedStack, Stacks};
use crate::sys::args::Task;
use crate::sys::page_words::PageWords;
use crate::sys::stack::{self, CallStack};
use crate::sys::user_stack::{self, UserStack};
use kernel::prelude::*;

/// Maximum number of stacks of a kind in a map.
const MOST: usize = 1 << 14;

/// The call stacks that are keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyStacks {
    /// The kernel's.
    pub(crate) kernel: bool,
    /// The user's.
    pub(crate) user: bool,
}

impl KeyStacks {
    /// Whether there is any.
    #[inline(always)]
    pub(crate) fn any(self) -> bool {
        self.kernel || self.user
    }
}

/// The call stacks of an event, by name. 0: the map has no such key.
///
/// The words are the names of the kernel's and of the user's stack, and the process of the user's stack, in the initial
/// namespace; 0 if the stack is empty. The first word suffices if only the kernel's stack is a key.
#[derive(Clone, Copy, Default)]
pub(super) struct StackNames(pub(super) [u64; Self::WORDS]);

impl StackNames {
    /// Number of words.
    pub(super) const WORDS: usize = 3;
}

/// Distinct stacks of a kind.
struct StackTable(Stacks<SharedWord, PageWords<SharedWord>>);

impl StackTable {
    /// Makes an empty table for this many stacks, at most [`MOST`], of `room` addresses. May sleep.
    fn new(slots: usize, room: usize) -> Result<Self> {
        let words = PageWords::new(Self::words(slots, room), Task::current().cpu() as u32)?;
        Ok(Self(Stacks::new(words, slots.min(MOST), room)))
    }

    fn words(slots: usize, room: usize) -> usize {
        Stacks::<SharedWord, PageWords<SharedWord>>::words(slots.min(MOST), room)
    }

    fn bytes(slots: usize, room: usize) -> usize {
        PageWords::<SharedWord>::bytes(Self::words(slots, room))
    }
}

/// The distinct stacks of a map. Large: for each slot half a KiB of the kernel's, and one KiB of the user's.
pub(super) struct MapStacks {
    kernel: Option<StackTable>,
    user: Option<StackTable>,
}

impl MapStacks {
    /// Makes empty tables of these kinds for this many stacks, at most [`MOST`]. May sleep.
    pub(super) fn new(keys: KeyStacks, slots: usize) -> Result<Self> {
        let table = |is_key, room| match is_key {
            true => StackTable::new(slots, room).map(Some),
            false => Ok(None),
        };
        Ok(Self {
            kernel: table(keys.kernel, stack::DEPTH)?,
            user: table(keys.user, user_stack::DEPTH)?,
        })
    }

    /// Number of bytes of the tables that [`new`](Self::new) makes.
    pub(super) fn bytes(keys: KeyStacks, slots: usize) -> usize {
        let bytes = |is_key, room| match is_key {
            true => StackTable::bytes(slots, room),
            false => 0,
        };
        bytes(keys.kernel, stack::DEPTH).saturating_add(bytes(keys.user, user_stack::DEPTH))
    }

    /// Takes the call stacks, and returns their names. `takes` is a word of the CPU, 1 while one of its contexts takes a
    /// stack. `user_stacks` is needed for the user's. [`None`]: there is no room, or this is an event of the unwinder or of
    /// an interrupt meanwhile. Any context, NMI included.
    #[inline(always)]
    pub(super) fn take(
        &self,
        takes: &LocalWord,
        user_stacks: Option<&UserStacksUse>,
        now: Moment<'_>,
    ) -> Option<StackNames> {
        // A nested context leaves the word as it is.
        if takes.load() != 0 {
            return None;
        }
        takes.store(1);
        let names = self.names(user_stacks, now);
        takes.store(0);
        names
    }

    #[inline(always)]
    fn names(&self, user_stacks: Option<&UserStacksUse>, now: Moment<'_>) -> Option<StackNames> {
        let (mut kernel, mut user, mut pid) = (0, 0, 0);
        if let Some(table) = &self.kernel {
            kernel = table.take_kernel(now)?;
        }
        if let (Some(table), Some(user_stacks)) = (&self.user, user_stacks) {
            (user, pid) = table.take_user(user_stacks, now)?;
        }
        Some(StackNames([kernel, user, pid]))
    }

    /// Whether stacks have these names. Any context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(super) fn has(&self, names: &StackNames) -> bool {
        let has = |table: &Option<StackTable>, name| match table {
            Some(table) => table.0.has(name),
            None => true,
        };
        let StackNames([kernel, user, _]) = *names;
        has(&self.kernel, kernel) && has(&self.user, user)
    }

    /// The kernel's stack with a name, the innermost address first.
    pub(super) fn kernel(
        &self,
        name: u64,
    ) -> Option<NamedStack<impl Iterator<Item = u64> + use<'_>>> {
        self.kernel.as_ref()?.0.find(name)
    }

    /// As [`kernel`](Self::kernel), for the user's stack.
    pub(super) fn user(
        &self,
        name: u64,
    ) -> Option<NamedStack<impl Iterator<Item = u64> + use<'_>>> {
        self.user.as_ref()?.0.find(name)
    }
}

// Functions of their own, so that the stacks are not on the CPU's stack together.
impl StackTable {
    /// Takes the kernel's call stack, and returns its name. Any context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn take_kernel(&self, now: Moment<'_>) -> Option<u64> {
        let mut stack = CallStack::new();
        stack.take_kernel(now.stack(), now.guard);
        self.0.name(stack.addresses(), 0)
    }

    /// Takes the user's call stack, and returns its name and the process. Any context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn take_user(&self, user_stacks: &UserStacksUse, now: Moment<'_>) -> Option<(u64, u64)> {
        let mut stack = UserStack::new();
        user_stacks.take(&mut stack, now.guard);
        // Threads of the kernel have one key.
        let pid = match stack.addresses() {
            [] => 0,
            _ => Task::current().tgid() as u32,
        };
        let name = self.0.name(stack.addresses(), stack.end)?;
        Some((name, pid.into()))
    }
}
