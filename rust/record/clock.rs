// SPDX-License-Identifier: GPL-2.0

//! Reading a trace's clock.
//!
//! Times of one buffer never go back: each buffer has a [`TraceClock`] of its own that sees
//! to it.

use super::platform::Platform;
use super::ring::platform::Local;

/// Which clock a probe reads, known when it is compiled. See [`TraceClock`].
pub trait ClockSource {
    /// Whether reading it is a call.
    const IS_CALL: bool;
    /// As [`TraceClock::read`].
    fn read<P: Platform>(clock: &TraceClock<P>) -> u64;
    /// As [`TraceClock::settle`].
    fn settle<P: Platform>(clock: &TraceClock<P>, read: u64) -> u64;
}

/// The processor's time stamp counter.
pub struct Tsc;

impl ClockSource for Tsc {
    const IS_CALL: bool = false;
    #[inline(always)]
    fn read<P: Platform>(_: &TraceClock<P>) -> u64 {
        P::tsc()
    }
    #[inline(always)]
    fn settle<P: Platform>(_: &TraceClock<P>, read: u64) -> u64 {
        read
    }
}

/// The monotonic clock.
pub struct Monotonic;

impl ClockSource for Monotonic {
    const IS_CALL: bool = true;
    #[inline(always)]
    fn read<P: Platform>(_: &TraceClock<P>) -> u64 {
        P::monotonic_ns()
    }
    #[inline(always)]
    fn settle<P: Platform>(clock: &TraceClock<P>, read: u64) -> u64 {
        clock.not_before_latest(read)
    }
}

/// The trace's clock, whichever it is.
pub struct AnyClock;

impl ClockSource for AnyClock {
    const IS_CALL: bool = true;
    #[inline(always)]
    fn read<P: Platform>(clock: &TraceClock<P>) -> u64 {
        clock.read()
    }
    #[inline(always)]
    fn settle<P: Platform>(clock: &TraceClock<P>, read: u64) -> u64 {
        clock.settle(read)
    }
}

/// A trace's clock, for one CPU.
///
/// Of the time stamp counter, what was read earlier on a CPU, in whatever context, is earlier
/// (interrupts are ordering). The NMI-safe monotonic clock may step back by a little, so no
/// reading is taken to be before `latest`. Who reserves compares with the last record's time, too.
pub struct TraceClock<P: Platform> {
    monotonic: bool,
    /// The latest time that was read from the monotonic clock.
    latest: P::Local,
}

impl<P: Platform> TraceClock<P> {
    /// The time stamp counter.
    pub fn tsc() -> Self {
        Self::new(false)
    }

    /// The monotonic clock.
    pub fn monotonic() -> Self {
        Self::new(true)
    }

    fn new(monotonic: bool) -> Self {
        Self {
            monotonic,
            latest: P::Local::new(0),
        }
    }

    /// Reads the clock: not yet a time. Any context, NMI included.
    #[inline(always)]
    fn read(&self) -> u64 {
        if self.monotonic {
            P::monotonic_ns()
        } else {
            P::tsc()
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
    pub(super) fn now(&self) -> u64 {
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
