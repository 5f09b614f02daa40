// SPDX-License-Identifier: GPL-2.0

//! The clocks of a trace.
//!
//! Times of one buffer never go back: each buffer has a [`TraceClock`] of its own that sees
//! to it.

use crate::abi::tsdl;
use crate::arch::clock::{monotonic_ns, tsc};
use crate::arch::word::LocalWord;
use crate::sys::clock;

const NSEC_PER_SEC: u64 = 1_000_000_000;

/// Which clock a trace's times are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockKind {
    /// The processor's time stamp counter: one instruction.
    Tsc {
        /// Ticks per second.
        frequency: u64,
    },
    /// The kernel's monotonic clock, in nanoseconds, by its NMI-safe reader.
    Monotonic,
}

impl ClockKind {
    /// The names of all, as the `clock` file has them.
    pub(crate) const NAMES: [&'static str; 2] = ["tsc", "mono"];

    /// The clock called `name`, if this machine has it.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        match name {
            "tsc" => Some(Self::Tsc {
                frequency: clock::tsc_frequency()?,
            }),
            "mono" => Some(Self::Monotonic),
            _ => None,
        }
    }

    /// The cheapest that can be trusted here.
    pub(crate) fn best() -> Self {
        Self::by_name("tsc").unwrap_or(Self::Monotonic)
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tsc { .. } => "tsc",
            Self::Monotonic => "mono",
        }
    }

    fn now(self) -> u64 {
        match self {
            Self::Tsc { .. } => tsc(),
            Self::Monotonic => monotonic_ns(),
        }
    }

    /// Its description in a trace that starts now; `boot_id` in text form.
    pub(crate) fn describe(self, boot_id: &str) -> tsdl::Clock<'_> {
        let frequency = match self {
            Self::Tsc { frequency } => frequency,
            Self::Monotonic => NSEC_PER_SEC,
        };
        // Of some tries, the one with the shortest time between the two readings of the clock.
        let mut best = (u64::MAX, 0, 0);
        for _ in 0..8 {
            let before = self.now();
            let real = clock::realtime_ns();
            let after = self.now();
            let taken = after.wrapping_sub(before);
            if taken < best.0 {
                best = (taken, before.wrapping_add(taken / 2), real);
            }
        }
        let (_, now, real) = best;
        // Seconds and the rest apart: a product of the whole would not fit.
        let mut offset_s = (real / NSEC_PER_SEC) as i64 - (now / frequency) as i64;
        let mut offset =
            (real % NSEC_PER_SEC * frequency / NSEC_PER_SEC) as i64 - (now % frequency) as i64;
        if offset < 0 {
            offset_s -= 1;
            offset += frequency as i64;
        }
        tsdl::Clock {
            name: "monotonic",
            description: match self {
                Self::Tsc { .. } => "Time stamp counter",
                Self::Monotonic => "Monotonic clock",
            },
            uuid: boot_id,
            frequency,
            offset_s,
            offset: offset as u64,
        }
    }
}

/// Which clock a probe reads, known when it is compiled. See [`TraceClock`].
pub(crate) trait ClockSource {
    /// Whether reading it is a call.
    const IS_CALL: bool;
    /// As [`TraceClock::read`].
    fn read(clock: &TraceClock) -> u64;
    /// As [`TraceClock::settle`].
    fn settle(clock: &TraceClock, read: u64) -> u64;
}

/// [`ClockKind::Tsc`].
pub(crate) struct Tsc;

impl ClockSource for Tsc {
    const IS_CALL: bool = false;
    #[inline(always)]
    fn read(_: &TraceClock) -> u64 {
        tsc()
    }
    #[inline(always)]
    fn settle(_: &TraceClock, read: u64) -> u64 {
        read
    }
}

/// [`ClockKind::Monotonic`].
pub(crate) struct Monotonic;

impl ClockSource for Monotonic {
    const IS_CALL: bool = true;
    #[inline(always)]
    fn read(_: &TraceClock) -> u64 {
        monotonic_ns()
    }
    #[inline(always)]
    fn settle(clock: &TraceClock, read: u64) -> u64 {
        clock.not_before_latest(read)
    }
}

/// The trace's clock, whichever it is.
pub(crate) struct AnyClock;

impl ClockSource for AnyClock {
    const IS_CALL: bool = true;
    #[inline(always)]
    fn read(clock: &TraceClock) -> u64 {
        clock.read()
    }
    #[inline(always)]
    fn settle(clock: &TraceClock, read: u64) -> u64 {
        clock.settle(read)
    }
}

/// A trace's clock, for one CPU.
///
/// Of the time stamp counter, what was read earlier on a CPU, in whatever context, is earlier
/// (interrupts are ordering). The NMI-safe monotonic clock may step back by a little, so no
/// reading is taken to be before `latest`. Who reserves compares with the last record's time, too.
pub(crate) struct TraceClock {
    monotonic: bool,
    /// The latest time that was read from the monotonic clock.
    latest: LocalWord,
}

impl TraceClock {
    pub(crate) fn new(kind: ClockKind) -> Self {
        Self {
            monotonic: kind == ClockKind::Monotonic,
            latest: LocalWord::new(0),
        }
    }

    /// Reads the clock: not yet a time. Any context, NMI included.
    #[inline(always)]
    fn read(&self) -> u64 {
        if self.monotonic {
            monotonic_ns()
        } else {
            tsc()
        }
    }

    /// The time, of a reading. On the buffer's CPU, preemption disabled; any context.
    #[inline(always)]
    fn settle(&self, read: u64) -> u64 {
        if self.monotonic {
            self.not_before_latest(read)
        } else {
            read
        }
    }

    /// The time. On the buffer's CPU, preemption disabled; any context, NMI included.
    pub(crate) fn now(&self) -> u64 {
        self.settle(self.read())
    }

    /// A nested context may read, reserve and leave a later time in `latest` between the two
    /// accesses here, which then put back an earlier one. But then this context finds that its
    /// time lies before that of the last record, or its reservation fails, and it starts over.
    #[inline(always)]
    fn not_before_latest(&self, read: u64) -> u64 {
        let time = read.max(self.latest.load());
        self.latest.store(time);
        time
    }
}
