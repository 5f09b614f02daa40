// SPDX-License-Identifier: GPL-2.0

//! The process that owns something, by its memory: threads share it, and a child or a program that exec started has
//! another one.

use kernel::mm::Mm;
use kernel::sync::aref::ARef;

/// The memory of a process. It keeps its identity, not the memory itself.
pub(crate) struct MemoryOwner(ARef<Mm>);

impl MemoryOwner {
    /// The memory of the current task. [`None`]: a thread of the kernel has none.
    pub(crate) fn current() -> Option<Self> {
        let current = kernel::current!();
        let memory: &Mm = current.mm()?;
        Some(Self(memory.into()))
    }

    /// Whether the current task has this memory.
    pub(crate) fn is_current(&self) -> bool {
        let current = kernel::current!();
        let memory = current.mm();
        memory.is_some_and(|memory| core::ptr::eq(memory.as_raw(), self.0.as_raw()))
    }
}
