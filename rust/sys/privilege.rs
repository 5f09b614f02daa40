// SPDX-License-Identifier: GPL-2.0

//! Rights of an open file and of the caller, and the kernel's lockdown.

use crate::arch::preempt::NoPreempt;
use crate::sys::args::{FarWord, Task};
use crate::sys::bindings;
use kernel::prelude::*;

/// Rights of an open file. open(2) decides them, from the credentials of the open, for all that the file does: the
/// task that reads, writes or closes it may be another one, for example a set-uid program that inherited the file.
#[derive(Clone, Copy)]
pub(crate) struct Rights {
    /// Whether the file may probe code of the kernel and read its memory: the opener has `CAP_PERFMON` or
    /// `CAP_SYS_ADMIN`, as for perf.
    pub(crate) may_probe: bool,
    /// Whether the file shows addresses of the kernel: the opener has `CAP_SYSLOG`, as for /proc/kallsyms. The kernel
    /// does not export `kptr_restrict`, so that is ignored.
    pub(crate) sees_addresses: bool,
}

impl Rights {
    /// Rights of the kernel itself, and of whoever loads the module.
    pub(crate) const ALL: Self = Self {
        may_probe: true,
        sees_addresses: true,
    };
    /// No right.
    pub(crate) const NONE: Self = Self {
        may_probe: false,
        sees_addresses: false,
    };

    /// Rights of a file that is being opened. Process context.
    ///
    /// # Safety
    ///
    /// `file` must be open, or being opened, during the call.
    pub(super) unsafe fn of(file: *const bindings::file) -> Self {
        let has = |one: u32, other: u32| {
            // SAFETY:
            // - By the contract the file, and so its credentials, exist.
            // - In process context there is a current task.
            unsafe { bindings::rtrace_opener_has(file, one as c_int, other as c_int) }
        };
        Self {
            may_probe: has(bindings::CAP_PERFMON, bindings::CAP_SYS_ADMIN),
            sees_addresses: has(bindings::CAP_SYSLOG, bindings::CAP_SYSLOG),
        }
    }
}

/// Calls `work` with the kernel's credentials, where the kernel would check those of the current task. Process context.
pub(super) fn as_kernel<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: In process context there is a current task. It gets its credentials back below.
    let own = unsafe { bindings::rtrace_be_kernel() };
    let result = work();
    // SAFETY: The call above has returned the credentials of the same task.
    unsafe { bindings::rtrace_be_caller(own) };
    result
}

/// The real user id of the current task, in the initial namespace. Process context.
pub(crate) fn current_user() -> u32 {
    Task::current().far_word(&FarWord::UID, &NoPreempt::new())
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
