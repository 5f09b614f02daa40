// SPDX-License-Identifier: GPL-2.0

//! Lists of probes: how a probe is attached to an event that no tracepoint fires.

use super::frequency::Frequency;
use crate::channel::Channel;
use crate::probe::listed::Removed;
use crate::probe::Probe;
use kernel::error::Result;
use kernel::sync::Arc;

/// A probe to attach.
pub(crate) struct NewProbe<'a> {
    /// The probe.
    pub(crate) probe: Arc<Probe>,
    /// The channel that the probe records into. [`None`]: the probe is that of a map or a trigger.
    pub(crate) channel: Option<&'a Arc<Channel>>,
    /// How often a sampled event is sampled.
    pub(crate) frequency: Frequency,
}

/// The list of probes of an event that no tracepoint fires.
pub(crate) trait ProbeList: Send + Sync {
    /// Adds the probe to the list, at the place of its [rank](Probe::rank). May sleep.
    fn attach(&self, new: NewProbe<'_>) -> Result;

    /// Number of events that the kernel has not called the probes for. The probes that exist count the difference.
    fn missed(&self) -> u64 {
        0
    }

    /// Handles a change of the tasks that a probe of the list wants. May sleep.
    fn follow_tasks(&self) -> Result {
        Ok(())
    }

    /// Removes `probe` from the list. It may run until `removed` is dropped, which waits once for all probes. May
    /// sleep.
    fn detach(&self, probe: &Probe, removed: &mut Removed);
}
