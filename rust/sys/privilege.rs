// SPDX-License-Identifier: GPL-2.0

//! Privileges of a task.

use crate::sys::bindings;
use kernel::prelude::*;

/// Whether the current task may see addresses of the kernel: it has `CAP_SYSLOG`, as for /proc/kallsyms. The
/// kernel does not export `kptr_restrict`, so that is ignored. Process context.
pub(crate) fn sees_addresses() -> bool {
    // SAFETY: In process context there is a current task.
    unsafe { bindings::rtrace_sees_addresses() }
}

/// Whether the current task may probe code of the kernel and read its memory: it has `CAP_PERFMON`, as for
/// perf. Process context.
pub(crate) fn may_probe() -> bool {
    // SAFETY: In process context there is a current task.
    unsafe { bindings::rtrace_may_probe() }
}

/// `EPERM`: the kernel is locked down for confidentiality, so tracing is refused, as tracefs refuses it. Process
/// context.
pub(crate) fn may_trace() -> Result {
    may(bindings::lockdown_reason_LOCKDOWN_TRACEFS)
}

/// `EPERM`: the kernel is locked down for confidentiality, so probes in its code are refused, as kprobe events are.
/// Process context.
pub(crate) fn may_probe_code() -> Result {
    may(bindings::lockdown_reason_LOCKDOWN_KPROBES)
}

#[cfg(CONFIG_SECURITY)]
fn may(what: bindings::lockdown_reason) -> Result {
    // SAFETY: In process context there is a current task.
    kernel::error::to_result(unsafe { bindings::security_locked_down(what) })
}

/// A kernel without security modules cannot be locked down.
#[cfg(not(CONFIG_SECURITY))]
fn may(_: bindings::lockdown_reason) -> Result {
    Ok(())
}
