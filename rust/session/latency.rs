// SPDX-License-Identifier: GPL-2.0

//! The latencies that a session measures.

use super::Session;
use crate::source::latency::results::Results;

impl Session {
    /// The results for wake-ups.
    pub(crate) fn wakeups(&self) -> &Results {
        self.sources.wakeups.results()
    }

    /// The results for preemptions.
    pub(crate) fn preemptions(&self) -> &Results {
        self.sources.preemptions.results()
    }

    /// The results for the session's timers.
    pub(crate) fn timers(&self) -> &Results {
        self.sources.timers.results()
    }
}
