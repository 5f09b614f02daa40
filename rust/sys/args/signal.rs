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

    const SIGILL: i32 = 4;
    const SIGTRAP: i32 = 5;
    const SIGBUS: i32 = 7;
    const SIGFPE: i32 = 8;
    const SIGSEGV: i32 = 11;
    const SIGCHLD: i32 = 17;
    const SIGSYS: i32 = 31;

    const SI_USER: i32 = 0;
    const SI_KERNEL: i32 = 0x80;
    const SI_QUEUE: i32 = -1;
    const SI_TIMER: i32 = -2;
    const SI_MESGQ: i32 = -3;
    const SI_TKILL: i32 = -6;
    /// The codes of a single signal are not above this one.
    const LAST_OF_SIGNAL: i32 = Self::SI_KERNEL - 1;

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
        match self.0.addr() {
            Self::NOINFO => Self::SI_USER,
            Self::PRIV => Self::SI_KERNEL,
            // SAFETY: The siginfo is live.
            _ => unsafe { (*self.0).__bindgen_anon_1.si_code },
        }
    }
}

/// The data of a siginfo beside its number, error and code. Data that a signal does not have are 0.
#[derive(Clone, Copy, Default)]
pub(crate) struct SigOrigin {
    /// The process that sent the signal, or the child that changed.
    pub(crate) pid: i32,
    /// The user of that process.
    pub(crate) uid: u32,
    /// The exit status of the child, or the signal that stopped or continued it.
    pub(crate) status: i32,
    /// The address of the fault, or of the system call that is not permitted.
    pub(crate) addr: u64,
    /// The value that was sent with the signal.
    pub(crate) value: u64,
    /// The CPU time of the child in user space, in units of 1/100 s.
    pub(crate) utime: i64,
    /// The CPU time of the child in the kernel.
    pub(crate) stime: i64,
}

impl SigInfo {
    /// The data of the signal `sig`. Which data there are follows from the signal and its code
    /// (`siginfo_layout()` in the kernel).
    #[inline(always)]
    pub(crate) fn origin(&self, sig: i32) -> SigOrigin {
        let mut origin = SigOrigin::default();
        if matches!(self.0.addr(), Self::NOINFO | Self::PRIV) {
            return origin;
        }
        // SAFETY: The siginfo is live. The kernel clears a siginfo before it fills it, so all bytes of the union are
        // initialised; each view of it consists of numbers and addresses.
        let fields = unsafe { &(*self.0).__bindgen_anon_1._sifields };
        match (sig, self.code()) {
            // SAFETY: As above.
            (Self::SIGCHLD, 1..=Self::LAST_OF_SIGNAL) => unsafe {
                origin.pid = fields._sigchld._pid;
                origin.uid = fields._sigchld._uid;
                origin.status = fields._sigchld._status;
                origin.utime = fields._sigchld._utime as i64;
                origin.stime = fields._sigchld._stime as i64;
            },
            // SAFETY: As above.
            (Self::SIGSYS, 1..=Self::LAST_OF_SIGNAL) => unsafe {
                origin.addr = fields._sigsys._call_addr as u64;
            },
            (
                Self::SIGILL | Self::SIGTRAP | Self::SIGBUS | Self::SIGFPE | Self::SIGSEGV,
                1..=Self::LAST_OF_SIGNAL,
            ) => {
                // SAFETY: As above.
                let addr = unsafe { fields._sigfault._addr };
                origin.addr = addr as u64;
            }
            // SAFETY: As above.
            (_, Self::SI_TIMER) => unsafe {
                origin.value = fields._timer._sigval.sival_ptr as u64;
            },
            // SAFETY: As above.
            (_, Self::SI_QUEUE | Self::SI_MESGQ) => unsafe {
                origin.pid = fields._rt._pid;
                origin.uid = fields._rt._uid;
                origin.value = fields._rt._sigval.sival_ptr as u64;
            },
            // SAFETY: As above.
            (_, Self::SI_USER | Self::SI_TKILL) => unsafe {
                origin.pid = fields._kill._pid;
                origin.uid = fields._kill._uid;
            },
            _ => {}
        }
        origin
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
