// SPDX-License-Identifier: GPL-2.0

//! The selection of the CPUs that a channel records.

use crate::channel::cpus::CpuSet;
use crate::input::cpulist::CpuList;
use crate::session::{ChannelId, Session};
use crate::sys::cpu;
use kernel::prelude::*;
use kernel::sync::Arc;

impl Session {
    /// The CPUs that a channel records.
    pub(crate) fn cpus(&self, channel: ChannelId) -> Result<Arc<CpuSet>> {
        self.look(channel, |channel| channel.cpus.clone())
    }

    /// Selects the CPUs to record, by a list, for the next trace. `control` is held.
    pub(in crate::session) fn set_cpus(&self, channel: ChannelId, list: &str) -> Result {
        let mut state = self.state.lock();
        let mut cpus = if list == "all" {
            CpuSet::All
        } else {
            CpuSet::none()?
        };
        let mut any = false;
        for item in CpuList::new(list, cpu::count()) {
            let item = item.map_err(|wrong| {
                let shown = wrong.shown(list);
                state.refuse(fmt!(
                    "tracing_cpus: the list is wrong\n{}",
                    format_args!("{shown}")
                ))
            })?;
            for cpu in item.cpus() {
                cpus.add(cpu);
                any = true;
            }
        }
        if !any {
            return Err(state.refuse(fmt!("tracing_cpus: the list names none")));
        }
        state.settings.channel_mut(channel)?.cpus = Arc::new(cpus, GFP_KERNEL)?;
        Ok(())
    }
}
