// SPDX-License-Identifier: GPL-2.0

//! What a session measures of latencies.

use super::Session;
use crate::source::latency::results::Results;
use crate::source::latency::timer::TimerLatency;
use kernel::prelude::*;

impl Session {
    /// What it has measured of wake-ups.
    pub(crate) fn wakeups(&self) -> &Results {
        self.sources.wakeups.results()
    }

    /// What it has measured of preemptions.
    pub(crate) fn preemptions(&self) -> &Results {
        self.sources.preemptions.results()
    }

    /// Whether lazy requests for these count.
    pub(crate) fn counts_lazy_preemptions(&self) -> bool {
        self.sources.preemptions.choice().counts_lazy()
    }

    /// Has them count from now on, or not.
    pub(crate) fn count_lazy_preemptions(&self, count: bool) {
        self.sources.preemptions.choice().count_lazy(count);
    }

    /// What it has measured of its timers.
    pub(crate) fn timers(&self) -> &Results {
        self.sources.timers.results()
    }

    /// Microseconds from one expiry of these to the next.
    pub(crate) fn timer_period(&self) -> u32 {
        self.sources.timers.period()
    }

    /// Has it be another one. `EINVAL`: that is none.
    pub(crate) fn set_timer_period(&self, microseconds: &str) -> Result {
        let (least, most) = TimerLatency::PERIODS;
        let period = microseconds.parse().ok();
        let period = period.filter(|period| (least..=most).contains(period));
        self.sources.timers.set_period(period.ok_or_else(|| {
            self.refuse(fmt!(
                "latency/timer/period: '{microseconds}' is no number from {least} to {most}"
            ))
        })?);
        Ok(())
    }

    /// Forgets all of it, and what was chosen.
    pub(super) fn reset_latencies(&self) {
        self.wakeups().reset();
        self.preemptions().reset();
        self.timers().reset();
        self.count_lazy_preemptions(false);
        self.sources.timers.set_period(TimerLatency::PERIOD);
    }
}
