// SPDX-License-Identifier: GPL-2.0

//! Signals.

use crate::sys::bindings;
use crate::sys::tracepoint::Arg;
use kernel::types::Opaque;

/// A `struct kernel_siginfo`, or one of the two values that stand for a usual one.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct SigInfo(*const bindings::kernel_siginfo);

// SAFETY: A pointer to a live siginfo, or `SEND_SIG_NOINFO` (0), or `SEND_SIG_PRIV` (1).
unsafe impl Arg for SigInfo {
    type Raw = *mut bindings::kernel_siginfo;
}

impl SigInfo {
    const NOINFO: usize = 0;
    const PRIV: usize = 1;

    /// The error number that goes with the signal.
    #[inline(always)]
    pub(crate) fn errno(&self) -> i32 {
        match self.0.addr() {
            Self::NOINFO | Self::PRIV => 0,
            // SAFETY: A live siginfo.
            _ => unsafe { (*self.0).__bindgen_anon_1.si_errno },
        }
    }

    /// Where the signal comes from (`SI_...`).
    #[inline(always)]
    pub(crate) fn code(&self) -> i32 {
        const SI_USER: i32 = 0;
        const SI_KERNEL: i32 = 0x80;
        match self.0.addr() {
            Self::NOINFO => SI_USER,
            Self::PRIV => SI_KERNEL,
            // SAFETY: A live siginfo.
            _ => unsafe { (*self.0).__bindgen_anon_1.si_code },
        }
    }
}

/// A `struct k_sigaction`: what a task does on a signal.
#[repr(transparent)]
pub(crate) struct SigAction(Opaque<bindings::k_sigaction>);

// SAFETY: A pointer to a live sigaction; tracepoints that pass one pass no NULL.
unsafe impl Arg for &SigAction {
    type Raw = *mut bindings::k_sigaction;
}

impl SigAction {
    /// The address of the handler, or `SIG_DFL` (0), or `SIG_IGN` (1).
    #[inline(always)]
    pub(crate) fn handler(&self) -> u64 {
        // SAFETY: A live sigaction. Read as a number, for it need not be a function.
        unsafe {
            (&raw const (*self.0.get()).sa.sa_handler)
                .cast::<u64>()
                .read()
        }
    }

    /// Its flags (`SA_...`).
    #[inline(always)]
    pub(crate) fn flags(&self) -> u64 {
        // SAFETY: A live sigaction.
        unsafe { (*self.0.get()).sa.sa_flags as u64 }
    }
}
