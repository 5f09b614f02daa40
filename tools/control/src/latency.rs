// SPDX-License-Identifier: GPL-2.0

//! The latencies that a session measures.

/// The kind of latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    /// A woken or preempted thread runs late.
    Wakeup,
    /// A thread gives up its CPU late.
    Preempt,
    /// A timer of a CPU fires late.
    Timer,
}

impl Latency {
    /// The pattern of its event.
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

    /// The file with the threshold of the event.
    pub(crate) const fn threshold(self) -> &'static str {
        match self {
            Self::Wakeup => "latency/wakeup/thresh",
            Self::Preempt => "latency/preempt/thresh",
            Self::Timer => "latency/timer/thresh",
        }
    }

    /// The file with the number of measured latencies.
    pub(crate) const fn stats(self) -> &'static str {
        match self {
            Self::Wakeup => "latency/wakeup/stats",
            Self::Preempt => "latency/preempt/stats",
            Self::Timer => "latency/timer/stats",
        }
    }
}
