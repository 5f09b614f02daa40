// SPDX-License-Identifier: GPL-2.0

//! What was measured of a latency, and who records its event.

use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::probe::recorders::Recorders;
use crate::sys::cpu;
use crate::sys::percpu::PerCpu;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Who records the event of a latency, and what a session has measured of it so far.
#[pin_data]
pub(crate) struct Results {
    #[pin]
    pub(crate) recorders: Recorders,
    /// The longest one, in nanoseconds.
    max: SharedWord,
    /// Shorter ones are no event.
    threshold: SharedWord,
    /// How often one was measured, by the CPU on which that was.
    measured: PerCpu<SharedWord>,
    /// How many were not.
    missed: SharedWord,
}

impl Results {
    /// Nothing was measured, and nobody wants it. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let measured = PerCpu::new(|| SharedWord::new(0))?;
        Arc::pin_init(
            pin_init!(Self {
                recorders <- Recorders::new(),
                max: SharedWord::new(0),
                threshold: SharedWord::new(0),
                measured,
                missed: SharedWord::new(0),
            }),
            GFP_KERNEL,
        )
    }

    /// The longest one so far, or since [`set_max`](Self::set_max), in nanoseconds.
    pub(crate) fn max(&self) -> u64 {
        self.max.load()
    }

    /// Has it begin anew from here.
    pub(crate) fn set_max(&self, ns: u64) {
        self.max.store(ns);
    }

    /// Shorter ones than this, in nanoseconds, are no event.
    pub(crate) fn threshold(&self) -> u64 {
        self.threshold.load()
    }

    /// Has it be another one.
    pub(crate) fn set_threshold(&self, ns: u64) {
        self.threshold.store(ns);
    }

    /// How many were measured.
    pub(crate) fn measured(&self) -> u64 {
        self.each().map(SharedWord::load).sum()
    }

    /// How many were not.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.load()
    }

    /// Forgets what was measured, and has no threshold any more.
    pub(crate) fn reset(&self) {
        let words = [&self.max, &self.threshold, &self.missed];
        Iterator::chain(words.into_iter(), self.each()).for_each(|word| word.store(0));
    }

    fn each(&self) -> impl Iterator<Item = &SharedWord> {
        cpu::possible().filter_map(|cpu| self.measured.of(cpu))
    }

    /// One was so long. Says whether that is an event.
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

    /// So many could not be measured.
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
