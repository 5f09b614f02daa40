// SPDX-License-Identifier: GPL-2.0

//! The root of all there is.

use crate::channel::config::Config;
use crate::event::provided::{Description, Provided};
use crate::event::registry::Registry;
use crate::event::Source;
use crate::file::Files;
use crate::session::{Serving, Sessions, Shared};
use crate::sys::hotplug::Hotplug;
use crate::sys::system;
use kernel::prelude::*;
use kernel::sync::Arc;

/// A loaded tracer. Dropping it removes the files and then ends what is being recorded.
// Fields in the order of their end.
pub(crate) struct Tracer {
    files: Arc<Files>,
    _serving: Serving,
    sessions: Arc<Sessions>,
    registry: Arc<Registry>,
}

impl Tracer {
    /// Makes the events of this kernel, the default session, whose defaults are `config`, and the
    /// files. May sleep.
    pub(crate) fn new(config: Config) -> Result<Arc<Self>> {
        let hotplug = Hotplug::new(c"trace/rtrace:prepare", c"trace/rtrace:online")?;
        let counter_hotplug = Hotplug::new(
            c"trace/rtrace_counter:prepare",
            c"trace/rtrace_counter:online",
        )?;
        let registry = Registry::new()?;
        let sessions = Sessions::new(Shared {
            registry: registry.clone(),
            hotplug: Arc::new(hotplug, GFP_KERNEL)?,
            counter_hotplug: Arc::new(counter_hotplug, GFP_KERNEL)?,
            defaults: config,
            boot_id: system::boot_id()?,
            worker: Sessions::worker()?,
        })?;
        let serving = Serving::new(&sessions);
        let files = Files::new(&sessions).inspect_err(|error| {
            pr_err!("cannot make /sys/kernel/debug/rtrace ({error:?}): is debugfs there, and not locked down?\n");
        })?;
        let tracer = Self {
            files,
            _serving: serving,
            sessions,
            registry,
        };
        Ok(Arc::new(tracer, GFP_KERNEL)?)
    }

    /// Takes an event that another module provides. May sleep.
    pub(crate) fn add_event(&self, description: Description) -> Result<Arc<Provided>> {
        let event = self.registry.provide(description)?;
        let Source::Provided(provided) = event.source() else {
            return Err(EINVAL);
        };
        if let Err(error) = self.files.add_event(&event) {
            self.registry.withdraw(&event);
            return Err(error);
        }
        self.sessions.events_came();
        Ok(provided.clone())
    }

    /// Takes back an event that its module will not emit any more. May sleep.
    pub(crate) fn remove_event(&self, provided: &Provided) {
        if let Some(event) = self.registry.event_of(provided) {
            // First, so that nobody who registers it again meets the old ones.
            self.files.remove_event(&event);
            self.registry.withdraw(&event);
        }
    }
}
