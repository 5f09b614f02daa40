// SPDX-License-Identifier: GPL-2.0

//! Control groups of the unified hierarchy (cgroup v2).

use crate::arch::preempt::NoPreempt;
use crate::arch::task;
use crate::sys::bindings;
use core::ptr::NonNull;
use kernel::error::from_err_ptr;
use kernel::prelude::*;

/// A control group. It may be removed meanwhile; then no task is in it any more.
///
/// # Invariants
///
/// - `cgroup` points to a live cgroup, of which this holds a reference, `level` below the root.
/// - `place` is where such a cgroup, and each that is deeper, has its ancestor of this level, in bytes
///   from its beginning.
pub(crate) struct Cgroup {
    cgroup: NonNull<bindings::cgroup>,
    level: c_int,
    place: usize,
}

// SAFETY: A reference may be given back by any thread.
unsafe impl Send for Cgroup {}
// SAFETY: Nothing of it changes.
unsafe impl Sync for Cgroup {}

impl Cgroup {
    /// The one with this path, from the root of the calling task's cgroup namespace on, as
    /// `/proc/PID/cgroup` has it. `ENOENT`: there is none; `ENOTDIR`: that is a file of one. May sleep.
    pub(crate) fn find(path: &CStr) -> Result<Self> {
        // SAFETY: The path is NUL-terminated. The result is an error, or a reference that is ours.
        let found = from_err_ptr(unsafe { bindings::cgroup_get_from_path(path.as_ptr().cast()) })?;
        let cgroup = NonNull::new(found).ok_or(ENOENT)?;
        // SAFETY: We hold a reference. Never changes.
        let level = unsafe { (*cgroup.as_ptr()).level };
        // INVARIANT: As the results say.
        Ok(Self {
            cgroup,
            level,
            // SAFETY: Computes a number.
            place: unsafe { bindings::rtrace_cgroup_ancestor_place(level) },
        })
    }

    /// Whether this is the same as `other`.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.cgroup == other.cgroup
    }

    /// Whether the task that runs this is in it, or in one below it. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn has_current(&self, _guard: &NoPreempt) -> bool {
        // SAFETY:
        // - The running task lives, and has a `css_set` to its end and after.
        // - That, and its cgroup, are not freed while the guard makes this an RCU reader. Of both
        //   nothing changes that is read here.
        // - A cgroup has an ancestor for each level up to its own, which is itself; by the
        //   invariant it is at `place`.
        unsafe {
            let set = (&raw const (*task::current()).cgroups).read_volatile();
            let cgroup = (*set).dfl_cgrp;
            let place = cgroup.wrapping_byte_add(self.place);
            (*cgroup).level >= self.level
                && place.cast::<*mut bindings::cgroup>().read() == self.cgroup.as_ptr()
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // SAFETY: By the invariant the reference is ours.
        unsafe { bindings::rtrace_cgroup_put(self.cgroup.as_ptr()) };
    }
}
