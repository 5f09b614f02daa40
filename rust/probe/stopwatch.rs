// SPDX-License-Identifier: GPL-2.0

//! Measures durations with the cheapest clock that can be trusted.

use crate::arch::clock::{monotonic_ns, tsc};
use crate::sys::clock::tsc_frequency;

/// A clock, read at the beginning and at the end of a duration. It need not be the trace's clock.
#[derive(Clone, Copy)]
pub(crate) enum Stopwatch {
    /// The processor's time stamp counter. The number is the length of a tick, in units of 2^-32 nanoseconds.
    Tsc(u64),
    /// The kernel's monotonic clock.
    Monotonic,
}

impl Stopwatch {
    /// The cheapest clock that can be trusted.
    pub(crate) fn best() -> Self {
        // The frequency is at least 1000 ticks, so the divisor is not 0.
        match tsc_frequency().and_then(|frequency| (1_000_000_000_u64 << 32).checked_div(frequency))
        {
            Some(per_tick) => Self::Tsc(per_tick),
            None => Self::Monotonic,
        }
    }

    /// The current time, in the clock's ticks. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn read(self) -> u64 {
        match self {
            Self::Tsc(_) => tsc(),
            Self::Monotonic => monotonic_ns(),
        }
    }

    /// The nanoseconds from one reading to another. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn ns_between(self, begin: u64, end: u64) -> u64 {
        // The clocks of two CPUs may differ by a little.
        self.ns(end.saturating_sub(begin))
    }

    /// The nanoseconds that this many ticks take. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn ns(self, passed: u64) -> u64 {
        match self {
            Self::Tsc(per_tick) => ((u128::from(passed) * u128::from(per_tick)) >> 32) as u64,
            Self::Monotonic => passed,
        }
    }
}
