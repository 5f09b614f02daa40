// SPDX-License-Identifier: GPL-2.0

//! The results of measuring a latency, and the probes of its event.

use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::probe::listed::ListedProbes;
use crate::sys::cpu;
use crate::sys::percpu::PerCpu;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The probes of a latency's event, and the session's results so far.
#[pin_data]
pub(crate) struct Results {
    #[pin]
    pub(crate) probes: ListedProbes,
    /// The longest latency, in nanoseconds.
    max: SharedWord,
    /// The threshold; shorter latencies cause no event.
    threshold: SharedWord,
    /// The number of measurements, for each CPU on which they were made.
    measured: PerCpu<SharedWord>,
    /// The number of latencies that could not be measured.
    missed: SharedWord,
}

impl Results {
    /// Makes results without measurements and without probes. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let measured = PerCpu::new(|| SharedWord::new(0))?;
        Arc::pin_init(
            pin_init!(Self {
                probes <- ListedProbes::new(),
                max: SharedWord::new(0),
                threshold: SharedWord::new(0),
                measured,
                missed: SharedWord::new(0),
            }),
            GFP_KERNEL,
        )
    }

    /// The longest latency so far, or since [`set_max`](Self::set_max), in nanoseconds.
    pub(crate) fn max(&self) -> u64 {
        self.max.load()
    }

    /// Sets the longest latency, from which the search continues.
    pub(crate) fn set_max(&self, ns: u64) {
        self.max.store(ns);
    }

    /// The threshold in nanoseconds; shorter latencies cause no event.
    pub(crate) fn threshold(&self) -> u64 {
        self.threshold.load()
    }

    /// Sets the threshold.
    pub(crate) fn set_threshold(&self, ns: u64) {
        self.threshold.store(ns);
    }

    /// The number of measured latencies.
    pub(crate) fn measured(&self) -> u64 {
        self.each().map(SharedWord::load).sum()
    }

    /// The number of latencies that could not be measured.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.load()
    }

    /// Resets the results and the threshold.
    pub(crate) fn reset(&self) {
        let words = [&self.max, &self.threshold, &self.missed];
        Iterator::chain(words.into_iter(), self.each()).for_each(|word| word.store(0));
    }

    fn each(&self) -> impl Iterator<Item = &SharedWord> {
        cpu::possible().filter_map(|cpu| self.measured.of(cpu))
    }

    /// Counts a latency of this length. Returns whether it causes an event.
    #[inline(always)]
    pub(crate) fn count(&self, ns: u64, guard: &NoPreempt) -> bool {
        let measured = self.measured.this_cpu(guard);
        measured.store(measured.load().wrapping_add(1));
        loop {
            let max = self.max.load();
            if ns <= max || self.max.compare_exchange(max, ns) {
                return ns >= self.threshold.load();
            }
        }
    }

    /// Counts latencies that could not be measured.
    #[inline(always)]
    pub(crate) fn miss(&self, number: u64) {
        if number == 0 {
            return;
        }
        loop {
            let missed = self.missed.load();
            let more = missed.wrapping_add(number);
            if self.missed.compare_exchange(missed, more) {
                return;
            }
        }
    }
}
