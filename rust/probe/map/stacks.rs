// SPDX-License-Identifier: GPL-2.0

//! The call stacks that are keys of a map.

use crate::arch::word::{LocalWord, SharedWord};
use crate::context::Moment;
use crate::map::stacks::{Stacks, STACK_WORDS};
use crate::sys::args::Task;
use crate::sys::page_words::PageWords;
use crate::sys::stack::{CallStack, DEPTH};
use kernel::prelude::*;

const _: () = assert!(DEPTH == STACK_WORDS);

/// Maximum number of stacks of a map.
const MOST: usize = 1 << 14;

/// The distinct stacks of a map. Large: half a KiB for each.
pub(super) struct MapStacks(Stacks<SharedWord, PageWords<SharedWord>>);

impl MapStacks {
    /// Makes an empty table for this many stacks, at most [`MOST`]. May sleep.
    pub(super) fn new(slots: usize) -> Result<Self> {
        let words = PageWords::new(Self::words(slots), Task::current().cpu() as u32)?;
        Ok(Self(Stacks::new(words, slots.min(MOST))))
    }

    fn words(slots: usize) -> usize {
        Stacks::<SharedWord, PageWords<SharedWord>>::words(slots.min(MOST))
    }

    /// Number of bytes of the table that [`new`](Self::new) makes.
    pub(super) fn bytes(slots: usize) -> usize {
        PageWords::<SharedWord>::bytes(Self::words(slots))
    }

    /// Takes the kernel's call stack, and returns its name. `takes` is a word of the CPU, 1 while one of its contexts
    /// takes a stack. [`None`]: there is no room, or this is an event of the unwinder or of an interrupt meanwhile. Any
    /// context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(super) fn take(&self, takes: &LocalWord, now: Moment<'_>) -> Option<u64> {
        // A nested context leaves the word as it is.
        if takes.load() != 0 {
            return None;
        }
        takes.store(1);
        let mut stack = CallStack::new();
        stack.take_kernel(now.stack(), now.guard);
        let name = self.0.name(stack.addresses());
        takes.store(0);
        name
    }

    /// Whether a stack has this name. Any context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(super) fn has(&self, name: u64) -> bool {
        self.0.has(name)
    }

    /// The addresses of the stack with a name, the innermost first.
    pub(super) fn find(&self, name: u64) -> Option<impl Iterator<Item = u64> + use<'_>> {
        self.0.find(name)
    }
}
