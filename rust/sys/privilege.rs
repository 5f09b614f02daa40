// SPDX-License-Identifier: GPL-2.0

//! What a task may do.

use crate::sys::bindings;

/// Whether the current task may see addresses of the kernel: it has `CAP_SYSLOG`, as for
/// /proc/kallsyms. `kptr_restrict` cannot be asked: the kernel does not export it. Process context.
pub(crate) fn sees_addresses() -> bool {
    // SAFETY: In process context there is a current task.
    unsafe { bindings::rtrace_sees_addresses() }
}

/// Whether the current task may have code of the kernel probed, and its memory read: it has
/// `CAP_PERFMON`, as for perf. Process context.
pub(crate) fn may_probe() -> bool {
    // SAFETY: In process context there is a current task.
    unsafe { bindings::rtrace_may_probe() }
}
