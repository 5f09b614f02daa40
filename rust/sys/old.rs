// SPDX-License-Identifier: GPL-2.0

//! Interfaces of the kernel that have two forms, where C code cannot hide that from Rust code. `features.c` finds out
//! which form the kernel has; `linux.h` is the same for C code.

use crate::sys::args::Task;
use crate::sys::bindings;

/// How many followed calls of the current task are running when fprobe calls a hook.
#[cfg(kernel_has = "fprobe_on_graph")]
pub(super) mod graph {
    use super::*;

    /// The calls that any tracer follows.
    ///
    /// # Safety
    ///
    /// `_probe` must have called its handler.
    #[inline(always)]
    pub(in crate::sys) unsafe fn depth(_probe: *const bindings::fprobe) -> u32 {
        // SAFETY: The running task lives; only code that runs in it changes the number.
        unsafe { (&raw const (*Task::current().as_ptr()).curr_ret_depth).read_volatile() as u32 }
    }
}

/// As above. The kernel keeps the calls of a task in one list, in which a node has the hook that follows the call.
#[cfg(not(kernel_has = "fprobe_on_graph"))]
pub(super) mod graph {
    use super::*;

    /// The calls that this hook follows.
    ///
    /// # Safety
    ///
    /// `probe` must have called its handler.
    #[inline(always)]
    pub(in crate::sys) unsafe fn depth(probe: *const bindings::fprobe) -> u32 {
        const LINK: usize = core::mem::offset_of!(bindings::rethook_node, llist);
        let mut depth = 0_u32;
        // SAFETY:
        // - The running task lives. Only code that runs in it, and that returns before this continues, changes the list.
        // - A node stays until its call returns, which is after this.
        unsafe {
            let mut link = (&raw const (*Task::current().as_ptr()).rethooks.first).read_volatile();
            while !link.is_null() {
                let node = link.byte_sub(LINK).cast::<bindings::rethook_node>();
                depth = depth.wrapping_add(((*node).rethook == (*probe).rethook).into());
                link = (*link).next;
            }
        }
        depth
    }
}

/// The flags of a new task.
#[cfg(kernel_has = "clone_flags")]
pub(crate) type CloneFlags = u64;
/// As above.
#[cfg(not(kernel_has = "clone_flags"))]
pub(crate) type CloneFlags = kernel::ffi::c_ulong;

/// The time of a tracepoint's argument, which is a number or a pointer to it.
pub(super) trait ExpiryArgument {
    /// The number.
    ///
    /// # Safety
    ///
    /// A pointer must be valid.
    unsafe fn ns(self) -> i64;
}

impl ExpiryArgument for i64 {
    #[inline(always)]
    unsafe fn ns(self) -> i64 {
        self
    }
}

impl ExpiryArgument for *mut i64 {
    #[inline(always)]
    unsafe fn ns(self) -> i64 {
        // SAFETY: By the contract.
        unsafe { *self }
    }
}

#[cfg(not(kernel_has = "exit_group_dead"))]
impl Task {
    /// Whether no thread of its process lives any more.
    #[inline(always)]
    pub(crate) fn is_group_dead(&self) -> bool {
        // SAFETY: A live task, whose signal structure lives as long. The counter is read once.
        unsafe { (&raw const (*(*self.as_ptr()).signal).live.counter).read_volatile() == 0 }
    }
}
