// SPDX-License-Identifier: GPL-2.0

//! A task.

use crate::sys::bindings;
use crate::sys::tracepoint::Arg;
use kernel::types::Opaque;

/// A `struct task_struct`.
#[repr(transparent)]
pub(crate) struct Task(Opaque<bindings::task_struct>);

// SAFETY: A pointer to a live task; tracepoints that pass one pass no NULL.
unsafe impl Arg for &Task {
    type Raw = *mut bindings::task_struct;
}

impl Task {
    /// Its name, padded with NUL.
    #[inline(always)]
    pub(crate) fn comm(&self) -> [u8; 16] {
        // SAFETY: 16 bytes of a live task; a renaming at this moment may mix two names.
        unsafe { (&raw const (*self.0.get()).comm).cast::<[u8; 16]>().read() }
    }

    /// Thread id in the initial namespace.
    #[inline(always)]
    pub(crate) fn tid(&self) -> i32 {
        // SAFETY: A live task; never changes.
        unsafe { (*self.0.get()).pid }
    }

    /// Process id (thread group id) in the initial namespace.
    #[inline(always)]
    pub(crate) fn pid(&self) -> i32 {
        // SAFETY: A live task; never changes but in exec.
        unsafe { (*self.0.get()).tgid }
    }

    /// Priority as LTTng shows it: 0 is the lowest real-time one, 20 the default.
    #[inline(always)]
    pub(crate) fn prio(&self) -> i32 {
        const MAX_RT_PRIO: i32 = 100;
        // SAFETY: A live task; read once.
        unsafe { (&raw const (*self.0.get()).prio).read_volatile() }.wrapping_sub(MAX_RT_PRIO)
    }
}
