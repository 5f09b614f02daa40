// SPDX-License-Identifier: GPL-2.0

//! The root of all there is.

use crate::channel::config::Config;
use crate::event::provided::{self, Description, Provided};
use crate::file::Files;
use crate::session::{Session, Tracepoints};
use crate::sys::hotplug::Hotplug;
use crate::sys::system;
use kernel::prelude::*;
use kernel::sync::Arc;

/// A loaded tracer: files, which hold the session that they show. Dropping it removes the files
/// and then ends what is being recorded.
pub(crate) struct Tracer {
    files: Arc<Files>,
}

impl Tracer {
    /// Makes the one session there is, whose defaults are `config`, and the files. May sleep.
    pub(crate) fn new(config: Config) -> Result<Arc<Self>> {
        let hotplug = Arc::new(
            Hotplug::new(c"trace/rtrace:prepare", c"trace/rtrace:online")?,
            GFP_KERNEL,
        )?;
        let tracepoints = Arc::new(Tracepoints::new()?, GFP_KERNEL)?;
        let session = Session::new("default", config, hotplug, tracepoints, system::boot_id()?)?;
        let files = Files::new(session).inspect_err(|error| {
            pr_err!("cannot make /sys/kernel/debug/rtrace ({error:?}): is debugfs there, and not locked down?\n");
        })?;
        Ok(Arc::new(Self { files }, GFP_KERNEL)?)
    }

    /// Takes an event that another module provides. May sleep.
    pub(crate) fn add_event(&self, description: Description) -> Result<&'static Provided> {
        let (event, provided) = provided::register(description)?;
        if let Err(error) = self.files.add_event(&event) {
            provided.unregister();
            return Err(error);
        }
        Ok(provided)
    }

    /// Takes back an event that its module will not emit any more. May sleep.
    pub(crate) fn remove_event(&self, provided: &'static Provided) {
        // The other way round, so that nobody who registers it again meets the old files.
        if let Some(event) = provided.event() {
            self.files.remove_event(&event);
        }
        provided.unregister();
    }
}
