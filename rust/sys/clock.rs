// SPDX-License-Identifier: GPL-2.0

//! What is known of the clocks, and the calendar.

use crate::sys::bindings;

/// Ticks of the time stamp counter ([`tsc`](crate::arch::clock::tsc)) per second, if it runs at a constant rate at all times on all CPUs.
pub(crate) fn tsc_frequency() -> Option<u64> {
    // SAFETY: Reads what was found out at boot.
    unsafe {
        if !bindings::rtrace_tsc_is_trustworthy() {
            return None;
        }
        Some(u64::from(bindings::tsc_khz) * 1000)
    }
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
