// SPDX-License-Identifier: GPL-2.0

//! How long something takes, by the cheapest clock that can be trusted.

use crate::arch::clock::{monotonic_ns, tsc};
use crate::sys::clock::tsc_frequency;

/// Reads a clock twice. It need not be the trace's.
#[derive(Clone, Copy)]
pub(super) enum Stopwatch {
    /// The processor's time stamp counter: nanoseconds in a tick, of which 32 bits are behind the point.
    Tsc(u64),
    /// The kernel's monotonic clock.
    Monotonic,
}

impl Stopwatch {
    /// The cheapest one.
    pub(super) fn best() -> Self {
        // A frequency is 1000 ticks at least, so that there is no division by 0.
        match tsc_frequency().and_then(|frequency| (1_000_000_000_u64 << 32).checked_div(frequency))
        {
            Some(per_tick) => Self::Tsc(per_tick),
            None => Self::Monotonic,
        }
    }

    /// A moment. Any context, NMI included.
    #[inline(always)]
    pub(super) fn read(self) -> u64 {
        match self {
            Self::Tsc(_) => tsc(),
            Self::Monotonic => monotonic_ns(),
        }
    }

    /// Nanoseconds from one moment to another. Any context, NMI included.
    #[inline(always)]
    pub(super) fn ns_between(self, begin: u64, end: u64) -> u64 {
        // The clocks of two CPUs may differ by a little.
        let passed = end.saturating_sub(begin);
        match self {
            Self::Tsc(per_tick) => ((u128::from(passed) * u128::from(per_tick)) >> 32) as u64,
            Self::Monotonic => passed,
        }
    }
}
