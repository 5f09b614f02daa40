// SPDX-License-Identifier: GPL-2.0

//! Counters of the kernel's perf, to be read.

use crate::arch::preempt::NoPreempt;
use crate::sys::hotplug::Hotplug;
use crate::sys::perf::{Arrivals, CounterConfig, PerfEvents};
use kernel::prelude::*;
use kernel::sync::Arc;

/// A counter on each CPU. It counts from its making on; that of a CPU that comes later, from shortly
/// after that.
pub(crate) struct Counter(PerfEvents);

impl Counter {
    /// Begins to count. `ENOENT`, `EOPNOTSUPP`: the machine cannot; `ENOSPC`: its counters are all in
    /// use. May sleep.
    pub(crate) fn new(
        hotplug: &Arc<Hotplug<Arrivals>>,
        config: CounterConfig,
    ) -> Result<Arc<Self>> {
        // SAFETY: There is no handler.
        let events = unsafe { PerfEvents::new(hotplug, config, None, |_| true)? };
        Ok(Arc::new(Self(events), GFP_KERNEL)?)
    }

    /// What was counted on this CPU; 0 if it came just now. The kernel is called, and what it does
    /// may be traced. Any context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(crate) fn now(&self, guard: &NoPreempt) -> u64 {
        self.0.count(guard)
    }
}
