// SPDX-License-Identifier: GPL-2.0

//! Counters of the kernel's perf, for reading.

use crate::arch::preempt::NoPreempt;
use crate::sys::hotplug::Hotplug;
use crate::sys::perf::{Arrivals, CounterConfig, PerfEvents};
use kernel::prelude::*;
use kernel::sync::Arc;

/// A counter on each CPU. It counts from its creation. On a CPU that comes online later, it counts from shortly
/// after that.
pub(crate) struct Counter(PerfEvents);

impl Counter {
    /// Starts to count. Errors: `ENOENT` or `EOPNOTSUPP` if the machine lacks this counter, `ENOSPC` if all its
    /// counters are in use. May sleep.
    pub(crate) fn new(
        hotplug: &Arc<Hotplug<Arrivals>>,
        config: CounterConfig,
    ) -> Result<Arc<Self>> {
        // SAFETY: There is no handler.
        let events = unsafe { PerfEvents::new(hotplug, config, None, |_| true)? };
        Ok(Arc::new(Self(events), GFP_KERNEL)?)
    }

    /// Value of this CPU's counter; 0 if the CPU has just come online. This calls the kernel, whose functions
    /// may be traced. Any context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(crate) fn now(&self, guard: &NoPreempt) -> u64 {
        self.0.count(guard)
    }
}
