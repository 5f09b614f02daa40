// SPDX-License-Identifier: GPL-2.0

//! What a session measures of latencies.

use super::Session;
use crate::event::latency::WakeupLatency;

impl Session {
    /// The wake-ups that it measures.
    pub(crate) fn wakeups(&self) -> &WakeupLatency {
        &self.own.wakeups
    }
}
