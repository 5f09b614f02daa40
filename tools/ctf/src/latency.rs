// SPDX-License-Identifier: GPL-2.0

//! The latencies that the tracer measures.

/// The kind of latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyKind {
    /// A woken or preempted thread runs late.
    Wakeup,
    /// A thread gives up its CPU late.
    Preempt,
    /// A timer of a CPU fires late.
    Timer,
}

impl LatencyKind {
    /// The name of its folder in the tree of files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wakeup => "wakeup",
            Self::Preempt => "preempt",
            Self::Timer => "timer",
        }
    }

    /// The pattern of its event.
    pub const fn pattern(self) -> &'static str {
        match self {
            Self::Wakeup => "latency:wakeup_latency",
            Self::Preempt => "latency:preempt_latency",
            Self::Timer => "latency:timer_latency",
        }
    }

    /// The event's name in a trace.
    pub fn event(self) -> &'static str {
        self.pattern().trim_start_matches("latency:")
    }
}
