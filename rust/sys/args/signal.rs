// SPDX-License-Identifier: GPL-2.0

//! Signals.

use crate::sys::bindings;
use crate::sys::tracepoint::Arg;
use kernel::types::Opaque;

/// A `struct kernel_siginfo`, or one of two values that stand for a usual siginfo.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct SigInfo(*const bindings::kernel_siginfo);

// SAFETY: The value is a pointer to a live siginfo, or `SEND_SIG_NOINFO` (0), or `SEND_SIG_PRIV` (1).
unsafe impl Arg for SigInfo {
    type Raw = *mut bindings::kernel_siginfo;
}

impl SigInfo {
    const NOINFO: usize = 0;
    const PRIV: usize = 1;

    /// The signal's error number.
    #[inline(always)]
    pub(crate) fn errno(&self) -> i32 {
        match self.0.addr() {
            Self::NOINFO | Self::PRIV => 0,
            // SAFETY: The siginfo is live.
            _ => unsafe { (*self.0).__bindgen_anon_1.si_errno },
        }
    }

    /// Origin of the signal (`SI_...`).
    #[inline(always)]
    pub(crate) fn code(&self) -> i32 {
        const SI_USER: i32 = 0;
        const SI_KERNEL: i32 = 0x80;
        match self.0.addr() {
            Self::NOINFO => SI_USER,
            Self::PRIV => SI_KERNEL,
            // SAFETY: The siginfo is live.
            _ => unsafe { (*self.0).__bindgen_anon_1.si_code },
        }
    }
}

/// A `struct k_sigaction`: a task's reaction to a signal.
#[repr(transparent)]
pub(crate) struct SigAction(Opaque<bindings::k_sigaction>);

// SAFETY: The pointer is to a live sigaction. No tracepoint passes NULL for it.
unsafe impl Arg for &SigAction {
    type Raw = *mut bindings::k_sigaction;
}

impl SigAction {
    /// The address of the handler, or `SIG_DFL` (0), or `SIG_IGN` (1).
    #[inline(always)]
    pub(crate) fn handler(&self) -> u64 {
        // SAFETY: The sigaction is live. The field is read as a number, because it need not be a function.
        unsafe {
            (&raw const (*self.0.get()).sa.sa_handler)
                .cast::<u64>()
                .read()
        }
    }

    /// Its flags (`SA_...`).
    #[inline(always)]
    pub(crate) fn flags(&self) -> u64 {
        // SAFETY: The sigaction is live.
        unsafe { (*self.0.get()).sa.sa_flags as u64 }
    }
}
