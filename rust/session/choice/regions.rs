// SPDX-License-Identifier: GPL-2.0

//! Reserved memory: its selection for a channel's buffers, and traces of earlier boots in it.

use crate::channel::region::{Region, RegionRefusal};
use crate::session::{ChannelId, Session};
use crate::sys::errno::enodata;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// The reserved memory that sessions use, by name.
#[pin_data]
pub(crate) struct Regions {
    #[pin]
    known: Mutex<KVec<Arc<Region>>>,
}

impl Regions {
    /// An empty list.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                known <- new_mutex!(KVec::new()),
            }),
            GFP_KERNEL,
        )
    }

    /// The memory that is reserved as `name`. `ENOENT`: there is none. May sleep.
    fn find(&self, name: &str) -> Result<Arc<Region>> {
        let mut known = self.known.lock();
        if let Some(region) = known.iter().find(|region| region.name() == name) {
            return Ok(region.clone());
        }
        let region = Arc::new(Region::find(name)?, GFP_KERNEL)?;
        known.push(region.clone(), GFP_KERNEL)?;
        Ok(region)
    }
}

impl Session {
    /// The reserved memory for a channel's buffers, if there is any.
    pub(crate) fn region(&self, channel: ChannelId) -> Result<Option<Arc<Region>>> {
        self.look(channel, |channel| channel.region.clone())
    }

    /// Selects the reserved memory by name, or none (`none`), for the next trace. `control` is held.
    pub(in crate::session) fn set_region(&self, channel: ChannelId, name: &str) -> Result {
        let region = match name {
            "none" => None,
            name => Some(self.shared.regions.find(name).map_err(|error| match error {
                ENOENT => self.refuse(fmt!(
                    "memory: the kernel's command line reserves no memory named '{name}' (reserve_mem=SIZE:ALIGN:{name})"
                )),
                error => error,
            })?),
        };
        if let Some(region) = &region {
            if region.has_earlier().is_ok_and(|has| has) {
                pr_info!("reserved memory '{name}' has a trace of an earlier boot; `rtrace recover` writes it to disk\n");
            }
        }
        self.state.lock().settings.channel_mut(channel)?.region = region;
        Ok(())
    }

    /// The reserved memory of a channel, if it has a trace of an earlier boot; otherwise `ENODATA`. May sleep.
    pub(crate) fn earlier_region(&self, channel: ChannelId) -> Result<Arc<Region>> {
        let region = self.region(channel)?.ok_or_else(enodata)?;
        match region.has_earlier() {
            Ok(true) => Ok(region),
            Ok(false) | Err(EBUSY) => Err(enodata()),
            Err(error) => Err(error),
        }
    }

    /// Clears the trace of an earlier boot in the reserved memory of a channel. `ENODATA`: there is none. May
    /// sleep.
    pub(crate) fn free_earlier(&self, channel: ChannelId) -> Result {
        self.earlier_region(channel)?.clear()
    }

    /// Notes the reason why a region cannot be used for a trace.
    pub(in crate::session) fn refuse_region(
        &self,
        region: &Region,
        refusal: RegionRefusal,
    ) -> Error {
        let name = region.name();
        match refusal {
            RegionRefusal::Earlier => {
                self.refuse(fmt!(
                    "memory: '{name}' has a trace of an earlier boot (rtrace recover, or echo 1 > free_recovered)"
                ));
                EEXIST
            }
            RegionRefusal::Busy => {
                self.refuse(fmt!(
                    "memory: another trace is in '{name}' (echo 1 > free_buffer)"
                ));
                EBUSY
            }
            RegionRefusal::Small(needed) => {
                let len = region.len();
                self.refuse(fmt!(
                    "memory: '{name}' has {len} bytes, but the buffers need {needed} (see subbuf_size, subbuf_count)"
                ))
            }
            RegionRefusal::Error(error) => error,
        }
    }

    /// Notes the reason why an event cannot be described any more.
    pub(in crate::session) fn refuse_metadata(&self, error: Error) -> Error {
        if error == ENOSPC {
            self.refuse(fmt!(
                "the reserved memory has no room to describe more events; stop, and choose them before the next start"
            ));
        }
        error
    }
}
