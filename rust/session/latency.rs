// SPDX-License-Identifier: GPL-2.0

//! What a session measures of latencies.

use super::Session;
use crate::source::latency::results::Results;

impl Session {
    /// What it has measured of wake-ups.
    pub(crate) fn wakeups(&self) -> &Results {
        self.sources.wakeups.results()
    }

    /// What it has measured of preemptions.
    pub(crate) fn preemptions(&self) -> &Results {
        self.sources.preemptions.results()
    }

    /// What it has measured of its timers.
    pub(crate) fn timers(&self) -> &Results {
        self.sources.timers.results()
    }
}
