// SPDX-License-Identifier: GPL-2.0

//! Control groups of the unified hierarchy (cgroup v2).

use crate::arch::preempt::NoPreempt;
use crate::sys::args::Task;
use crate::sys::bindings;
use core::ptr::NonNull;
use kernel::error::from_err_ptr;
use kernel::prelude::*;

/// A control group. It may be removed while this lives; then it has no task any more.
///
/// # Invariants
///
/// - `cgroup` points to a live cgroup, to which this holds a reference. `level` is its depth below the root.
/// - `place` is the offset, in bytes, of the pointer to the ancestor at depth `level`, in each cgroup of at
///   least that depth.
pub(crate) struct Cgroup {
    cgroup: NonNull<bindings::cgroup>,
    level: c_int,
    place: usize,
}

// SAFETY: Any thread may put the reference.
unsafe impl Send for Cgroup {}
// SAFETY: None of the fields changes.
unsafe impl Sync for Cgroup {}

impl Cgroup {
    /// Finds the cgroup with this path. The path begins at the root of the calling task's cgroup namespace, as
    /// in `/proc/PID/cgroup`. Errors: `ENOENT` if no such cgroup exists, `ENOTDIR` if the path names a file
    /// inside a cgroup. May sleep.
    pub(crate) fn find(path: &CStr) -> Result<Self> {
        // SAFETY: The path is NUL-terminated. The result is an error, or a reference that we own.
        let found = from_err_ptr(unsafe { bindings::cgroup_get_from_path(path.as_ptr().cast()) })?;
        let cgroup = NonNull::new(found).ok_or(ENOENT)?;
        // SAFETY: We hold a reference. The level never changes.
        let level = unsafe { (*cgroup.as_ptr()).level };
        // INVARIANT: The two calls returned these values.
        Ok(Self {
            cgroup,
            level,
            // SAFETY: The function only computes an offset.
            place: unsafe { bindings::rtrace_cgroup_ancestor_place(level) },
        })
    }

    /// Whether this is the same as `other`.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.cgroup == other.cgroup
    }

    /// Whether a task is in this cgroup or in a descendant of it. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn has(&self, task: &Task, _guard: &NoPreempt) -> bool {
        // SAFETY:
        // - The task lives. It has a `css_set` until its structure is freed.
        // - The guard makes this an RCU reader, so neither the `css_set` nor its cgroup is freed. The fields
        //   read here never change in either of them.
        // - A cgroup has one ancestor for each level up to its own; the ancestor at its own level is the cgroup
        //   itself. By the invariant, the pointer is at `place`.
        unsafe {
            let set = (&raw const (*task.as_ptr()).cgroups).read_volatile();
            let cgroup = (*set).dfl_cgrp;
            let place = cgroup.wrapping_byte_add(self.place);
            (*cgroup).level >= self.level
                && place.cast::<*mut bindings::cgroup>().read() == self.cgroup.as_ptr()
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // SAFETY: By the invariant we own the reference.
        unsafe { bindings::rtrace_cgroup_put(self.cgroup.as_ptr()) };
    }
}
