// SPDX-License-Identifier: GPL-2.0

//! What a session measures of latencies.

use super::Session;
use crate::event::latency::results::Results;
use crate::event::latency::timer::TimerLatency;
use kernel::prelude::*;

impl Session {
    /// What it has measured of wake-ups.
    pub(crate) fn wakeups(&self) -> &Results {
        self.own.wakeups.results()
    }

    /// What it has measured of its timers.
    pub(crate) fn timers(&self) -> &Results {
        self.own.timers.results()
    }

    /// Microseconds from one expiry of these to the next.
    pub(crate) fn timer_period(&self) -> u32 {
        self.own.timers.period()
    }

    /// Has it be another one. `EINVAL`: that is none.
    pub(crate) fn set_timer_period(&self, microseconds: &str) -> Result {
        let (least, most) = TimerLatency::PERIODS;
        let period = microseconds.parse().ok();
        let period = period.filter(|period| (least..=most).contains(period));
        self.own.timers.set_period(period.ok_or_else(|| {
            self.refuse(fmt!(
                "timer_latency_period: '{microseconds}' is no number from {least} to {most}"
            ))
        })?);
        Ok(())
    }

    /// Forgets all of it, and goes back to the usual period.
    pub(super) fn reset_latencies(&self) {
        self.wakeups().reset();
        self.timers().reset();
        self.own.timers.set_period(TimerLatency::PERIOD);
    }
}
