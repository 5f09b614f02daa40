// SPDX-License-Identifier: GPL-2.0

//! The probes that are attached for a session: the probes of a trace, or of the session's triggers.

use super::probe_list::{NewProbe, ProbeList};
use super::session::SessionSources;
use super::syscall::probe::CallProbes;
use crate::probe::listed::Removed;
use crate::probe::Probe;
use crate::sys::tracepoint::{self, AttachPoint, Attachments, Handler};
use kernel::prelude::*;
use kernel::sync::Arc;

/// Probes that are attached to events. Dropping it detaches them.
pub(crate) struct AttachedProbes {
    pub(super) sources: SessionSources,
    tracepoints: Attachments<Probe>,
    /// For a trace, one per channel and direction, with all system calls that the channel records or recorded
    /// before. For triggers, one per trigger.
    pub(super) calls: Attachments<CallProbes>,
    lists: KVVec<Listed>,
}

/// A probe in a list.
struct Listed {
    list: Arc<dyn ProbeList>,
    probe: Arc<Probe>,
    /// The events that the list had missed when this was counted last.
    missed: u64,
}

impl Listed {
    /// Counts the events that the list has missed since the last count.
    fn count_missed(&mut self) {
        let missed = self.list.missed();
        let before = core::mem::replace(&mut self.missed, missed);
        self.probe.count_missed(missed.saturating_sub(before));
    }
}

impl AttachedProbes {
    /// Makes it without probes, for a session with these `sources`.
    pub(crate) fn new(sources: &SessionSources) -> Self {
        Self {
            sources: sources.clone(),
            tracepoints: Attachments::new(),
            calls: Attachments::new(),
            lists: KVVec::new(),
        }
    }

    /// Attaches a probe to a tracepoint. May sleep.
    pub(super) fn at_tracepoint(
        &mut self,
        place: impl Into<AttachPoint>,
        handler: Handler<Probe>,
        new: NewProbe<'_>,
    ) -> Result {
        let rank = new.probe.rank();
        self.tracepoints.attach(place, handler, new.probe, rank)
    }

    /// Adds a probe to a list. May sleep.
    pub(super) fn in_list(&mut self, list: Arc<dyn ProbeList>, new: NewProbe<'_>) -> Result {
        self.lists.reserve(1, GFP_KERNEL)?;
        let probe = new.probe.clone();
        list.attach(new)?;
        let listed = Listed {
            missed: list.missed(),
            list,
            probe,
        };
        Ok(self.lists.push(listed, GFP_KERNEL)?)
    }

    /// All probes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Probe> {
        let calls = self.calls.iter().flat_map(|calls| calls.iter());
        let lists = self.lists.iter().map(|listed| &*listed.probe);
        let tracepoints = self.tracepoints.iter().map(|probe| &**probe);
        Iterator::chain(Iterator::chain(tracepoints, calls), lists)
    }

    /// Lets the probes follow a changed set of tasks. May sleep.
    pub(crate) fn follow_tasks(&self) -> Result {
        let mut lists = self.lists.iter();
        lists.try_for_each(|listed| listed.list.follow_tasks())
    }

    /// Counts the events that the kernel has missed since the last count, in the channels of their probes. May sleep.
    pub(crate) fn count_missed(&mut self) {
        self.lists.iter_mut().for_each(Listed::count_missed);
    }

    /// Forgets the events that were missed since the last count. May sleep.
    pub(crate) fn forget_missed(&mut self) {
        let lists = self.lists.iter_mut();
        lists.for_each(|listed| listed.missed = listed.list.missed());
    }

    /// Detaches the probes that are not `wanted`, and waits until none of them runs. While other calls share
    /// the handler of a system call, its probe is only disabled. Enables the wanted probes. May sleep.
    pub(crate) fn keep(&mut self, wanted: impl Fn(&Probe) -> bool) {
        // Dropped at the end, so that the wait is one for all lists.
        let mut removed = Removed::new();
        self.lists.retain(|listed| {
            let stays = wanted(&listed.probe);
            if !stays {
                listed.count_missed();
                listed.list.detach(&listed.probe, &mut removed);
            }
            stays
        });
        // A call may sleep at this moment, and continue later.
        for probe in self.calls.iter().flat_map(|calls| calls.iter()) {
            probe.set_live(wanted(probe));
        }
        tracepoint::detach(&mut [
            &mut self.tracepoints.picked(|probe| !wanted(probe)),
            &mut self.calls.picked(|calls| !calls.iter().any(Probe::is_live)),
        ]);
    }
}

impl Drop for AttachedProbes {
    fn drop(&mut self) {
        self.keep(|_| false);
    }
}
