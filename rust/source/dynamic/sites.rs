// SPDX-License-Identifier: GPL-2.0

//! The places in a program where an event fires, each with the values to record there.

use super::program::FetchProgram;
use super::{Firing, NoEvent};
use crate::input::dynamic::ProbeLine;
use crate::sys::args::Registers;
use crate::sys::kprobe::Reached;
use crate::sys::threads::ProcessMemory;
use crate::sys::uprobe::{KeptFile, ReachedInProgram, Uprobe};
use kernel::prelude::*;
use kernel::sync::Arc;

/// The hook that fires an event at places in a program.
pub(super) struct SitesInProgram(KVec<Pin<KBox<Uprobe<AtSite>>>>);

/// A place that fires the event.
struct AtSite {
    firing: Arc<Firing>,
    /// Reads the fields there. [`None`] for the first place, whose program the event has.
    program: Option<FetchProgram>,
}

impl SitesInProgram {
    /// Makes a disabled hook at the places of `probe`. May sleep.
    pub(super) fn new<'a>(
        probe: &ProbeLine<'a>,
        file: &Arc<KeptFile>,
        firing: &Arc<Firing>,
    ) -> Result<Self, NoEvent<'a>> {
        let mut sites = KVec::new();
        for site in probe.sites() {
            let site = site.map_err(NoEvent::Wrong)?;
            let program = match sites.is_empty() {
                true => None,
                false => Some(FetchProgram::new(probe, &site)?),
            };
            let firing = firing.clone();
            let place = site.place;
            let at_site = Arc::new(AtSite { firing, program }, GFP_KERNEL)?;
            let uprobe = Uprobe::new(file.clone(), place.offset, place.counter, at_site)?;
            uprobe
                .check()
                .map_err(|error| NoEvent::at(place, false, error))?;
            sites.push(uprobe, GFP_KERNEL)?;
        }
        Ok(Self(sites))
    }

    /// Enables the event, in the memory of the tasks that are wanted. After an error some places may be enabled. May
    /// sleep.
    pub(super) fn enable(&self) -> Result {
        self.0.iter().try_for_each(|site| site.enable())
    }

    /// If the event is enabled, moves it to the memory of the tasks that are wanted now. May sleep.
    pub(super) fn follow(&self) -> Result {
        let mut followed = Ok(());
        for site in &self.0 {
            // The others follow also after an error.
            followed = followed.and(site.follow());
        }
        followed
    }

    /// Disables the event. May sleep.
    pub(super) fn disable(&self) {
        self.0.iter().for_each(|site| site.disable());
    }
}

impl Reached for AtSite {
    fn reached(&self, registers: &Registers) {
        let firing = &*self.firing;
        let program = self.program.as_ref().unwrap_or(&firing.program);
        firing.record(&program.fetch(registers), registers);
    }
}

impl ReachedInProgram for AtSite {
    fn wants(&self, memory: &ProcessMemory<'_>) -> bool {
        self.firing.wants(memory)
    }

    fn wants_current_task(&self) -> bool {
        self.firing.wants_current_task()
    }
}
