// SPDX-License-Identifier: GPL-2.0

//! Latencies that a session measures.

/// What can come late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    /// A thread that was woken.
    Wakeup,
    /// That a thread gives up its CPU when it is asked to.
    Preempt,
    /// A timer of a CPU.
    Timer,
}

impl Latency {
    /// The event of it, as patterns know it.
    pub const fn pattern(self) -> &'static str {
        match self {
            Self::Wakeup => "latency:wakeup_latency",
            Self::Preempt => "latency:preempt_latency",
            Self::Timer => "latency:timer_latency",
        }
    }

    /// The event's name in a trace.
    pub const fn event(self) -> &'static str {
        match self {
            Self::Wakeup => "wakeup_latency",
            Self::Preempt => "preempt_latency",
            Self::Timer => "timer_latency",
        }
    }

    /// The file with the shortest one that is an event.
    pub(crate) const fn threshold(self) -> &'static str {
        match self {
            Self::Wakeup => "latency/wakeup/thresh",
            Self::Preempt => "latency/preempt/thresh",
            Self::Timer => "latency/timer/thresh",
        }
    }

    /// The file that says how many were measured.
    pub(crate) const fn stats(self) -> &'static str {
        match self {
            Self::Wakeup => "latency/wakeup/stats",
            Self::Preempt => "latency/preempt/stats",
            Self::Timer => "latency/timer/stats",
        }
    }
}
