// SPDX-License-Identifier: GPL-2.0

//! Clocks that may be read in any context, NMI included.

use crate::sys::bindings;
use core::arch::asm;

/// The processor's time stamp counter, in ticks.
///
/// Unordered: two reads may come out of order by what the processor has in flight.
#[inline(always)]
pub(crate) fn tsc() -> u64 {
    let ticks: u64;
    // SAFETY: Reads a register. It comes in two halves.
    unsafe {
        asm!(
            "rdtsc",
            "shl rdx, 32",
            "or rax, rdx",
            out("rax") ticks,
            out("rdx") _,
            options(nomem, nostack),
        );
    }
    ticks
}

/// Ticks of [`tsc`] per second, if it runs at a constant rate at all times on all CPUs.
pub(crate) fn tsc_frequency() -> Option<u64> {
    // SAFETY: Reads what was found out at boot.
    unsafe {
        if !bindings::rtrace_tsc_is_trustworthy() {
            return None;
        }
        Some(u64::from(bindings::tsc_khz) * 1000)
    }
}

/// The kernel's monotonic clock, in nanoseconds. It may step back by a little where it is
/// read in an NMI that interrupts its own update.
#[inline(always)]
pub(crate) fn monotonic_ns() -> u64 {
    let now: u64;
    // SAFETY:
    // - NMI-safe by its contract; takes nothing and returns a number.
    // - `nostack` in spite of the call: see `NoPreempt`. The compiler would align the stack to 16
    //   bytes on the way, which kernel code does not ask for.
    unsafe {
        asm!(
            "call {clock}",
            clock = sym bindings::ktime_get_mono_fast_ns,
            lateout("rax") now,
            clobber_abi("C"),
            options(nostack),
        );
    }
    now
}

/// Nanoseconds since the epoch. Not from NMI.
pub(crate) fn realtime_ns() -> u64 {
    let mut now = bindings::timespec64::default();
    // SAFETY: Writes `now`.
    unsafe { bindings::ktime_get_real_ts64(&mut now) };
    (now.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(now.tv_nsec as u64)
}

/// A moment in the calendar, UTC, as ISO 8601 writes it without separators.
pub(crate) struct Calendar(bindings::tm);

impl Calendar {
    /// This moment.
    pub(crate) fn now() -> Self {
        let mut tm = bindings::tm::default();
        // SAFETY: Writes `tm`.
        unsafe { bindings::time64_to_tm((realtime_ns() / 1_000_000_000) as i64, 0, &mut tm) };
        Self(tm)
    }
}

impl kernel::fmt::Display for Calendar {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let tm = &self.0;
        write!(
            f,
            "{:04}{:02}{:02}T{:02}{:02}{:02}+0000",
            tm.tm_year + 1900,
            tm.tm_mon + 1,
            tm.tm_mday,
            tm.tm_hour,
            tm.tm_min,
            tm.tm_sec
        )
    }
}
