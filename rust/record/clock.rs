// SPDX-License-Identifier: GPL-2.0

//! Readings of a trace's clock.
//!
//! Times of one buffer never go back: each buffer has its own [`TraceClock`], which ensures this.

use super::platform::WritePlatform;
use super::ring::platform::Local;

/// The clock that a probe reads, selected when the probe is compiled. See [`TraceClock`].
pub trait ClockSource {
    /// Whether a reading needs a function call.
    const IS_CALL: bool;
    /// See [`TraceClock::read`].
    fn read<P: WritePlatform>(clock: &TraceClock<P>) -> u64;
    /// See [`TraceClock::settle`].
    fn settle<P: WritePlatform>(clock: &TraceClock<P>, read: u64) -> u64;
}

/// The processor's time stamp counter.
pub struct Tsc;

impl ClockSource for Tsc {
    const IS_CALL: bool = false;
    #[inline(always)]
    fn read<P: WritePlatform>(_: &TraceClock<P>) -> u64 {
        P::tsc()
    }
    #[inline(always)]
    fn settle<P: WritePlatform>(_: &TraceClock<P>, read: u64) -> u64 {
        read
    }
}

/// The monotonic clock.
pub struct Monotonic;

impl ClockSource for Monotonic {
    const IS_CALL: bool = true;
    #[inline(always)]
    fn read<P: WritePlatform>(_: &TraceClock<P>) -> u64 {
        P::monotonic_ns()
    }
    #[inline(always)]
    fn settle<P: WritePlatform>(clock: &TraceClock<P>, read: u64) -> u64 {
        clock.not_before_latest(read)
    }
}

/// The trace's clock, selected at run time.
pub struct AnyClock;

impl ClockSource for AnyClock {
    const IS_CALL: bool = true;
    #[inline(always)]
    fn read<P: WritePlatform>(clock: &TraceClock<P>) -> u64 {
        clock.read()
    }
    #[inline(always)]
    fn settle<P: WritePlatform>(clock: &TraceClock<P>, read: u64) -> u64 {
        clock.settle(read)
    }
}

/// A trace's clock, for one CPU.
///
/// The time stamp counter never goes back on a CPU, in any context, because an interrupt orders the
/// readings before and after it. The NMI-safe monotonic clock may go back a little. So the clock returns
/// `latest` instead of an earlier reading. A reservation also compares the time with that of the last record.
pub struct TraceClock<P: WritePlatform> {
    kind: Kind,
    /// Latest reading of the monotonic clock, or the latest given time.
    latest: P::Local,
}

/// The clock that is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tsc,
    Monotonic,
    Given,
}

impl<P: WritePlatform> TraceClock<P> {
    /// Makes a clock that reads the time stamp counter.
    pub fn tsc() -> Self {
        Self::new(Kind::Tsc)
    }

    /// Makes a clock that reads the monotonic clock.
    pub fn monotonic() -> Self {
        Self::new(Kind::Monotonic)
    }

    /// Makes a clock that shows the latest [given](Self::give) time.
    pub fn given() -> Self {
        Self::new(Kind::Given)
    }

    fn new(kind: Kind) -> Self {
        Self {
            kind,
            latest: P::Local::new(0),
        }
    }

    /// Reads the clock. [`settle`](Self::settle) makes a time of the reading. Any context, NMI
    /// included.
    #[inline(always)]
    fn read(&self) -> u64 {
        match self.kind {
            Kind::Tsc => P::tsc(),
            Kind::Monotonic => P::monotonic_ns(),
            Kind::Given => self.latest.load(),
        }
    }

    /// Returns the time of a reading. On the buffer's CPU, preemption disabled; any context, NMI
    /// included.
    #[inline(always)]
    fn settle(&self, read: u64) -> u64 {
        match self.kind {
            Kind::Monotonic => self.not_before_latest(read),
            Kind::Tsc | Kind::Given => read,
        }
    }

    /// Gives the time of what is recorded next. Only for a clock that shows given times; by its one writer.
    pub(super) fn give(&self, time: u64) {
        self.latest.store(time);
    }

    /// Returns the time. On the buffer's CPU, preemption disabled; any context, NMI included.
    pub(super) fn now(&self) -> u64 {
        self.settle(self.read())
    }

    /// Returns the later of a reading and `latest`, and stores it in `latest`.
    ///
    /// Between the load and the store, a nested context may read, reserve, and store a later time, which
    /// the store here replaces by an earlier one. But then this context finds that its time is before that
    /// of the last record, or its reservation fails. In both cases it starts over.
    #[inline(always)]
    fn not_before_latest(&self, read: u64) -> u64 {
        let time = read.max(self.latest.load());
        self.latest.store(time);
        time
    }
}
