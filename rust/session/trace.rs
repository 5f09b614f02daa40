// SPDX-License-Identifier: GPL-2.0

//! One trace: from a start of the session to its stop, and what stays of it.

use super::probes::Probes;
use super::{metadata, Numbers, Selection, Session, State};
use crate::channel::{Channel, Setup};
use crate::event;
use crate::sys::debugfs::text::Text;
use crate::sys::hotplug::Watch;
use crate::sys::system;
use core::fmt::Write;
use kernel::prelude::*;
use kernel::sync::Arc;

/// A trace that is being recorded. [`stop`](Self::stop) ends it; so does dropping it.
// Fields in the order of their end: probes before the watch, which flushes.
pub(super) struct Recording {
    probes: Probes,
    watch: Option<Pin<KBox<Watch<Channel>>>>,
    channel: Arc<Channel>,
}

/// What stays of a trace while it is recorded and after.
pub(super) struct Trace {
    channel: Arc<Channel>,
    /// The metadata but for the events.
    preamble: Text,
    /// The events that the metadata describes.
    numbers: Numbers,
}

impl Recording {
    /// Begins a trace of the events in `selection`. Failing, leaves nothing behind.
    pub(super) fn start(
        session: &Session,
        state: &State,
        selection: &Selection,
    ) -> Result<(Self, Trace)> {
        let numbers = Numbers::new(selection)?;
        let setup = Setup {
            config: state.config,
            layout: numbers.layout(),
            clock: state.clock,
            uuid: system::random_uuid(),
        };
        let preamble = metadata::preamble(session, &setup)?;
        let channel = Arc::new(Channel::new(setup)?, GFP_KERNEL)?;
        let watch = Watch::new(&session.hotplug, channel.clone())?;
        let mut recording = Self {
            probes: Probes::new(channel.clone())?,
            watch: Some(watch),
            channel: channel.clone(),
        };
        recording.select(session, selection, &numbers)?;
        channel.start();
        Ok((
            recording,
            Trace {
                channel,
                preamble,
                numbers,
            },
        ))
    }

    /// Records exactly the events in `selection` from now on; all of them have `numbers`.
    pub(super) fn select(
        &mut self,
        session: &Session,
        selection: &Selection,
        numbers: &Numbers,
    ) -> Result {
        self.probes.select(&session.tracepoints, selection, numbers)
    }

    /// Ends the trace.
    pub(super) fn stop(self) {}
}

impl Drop for Recording {
    fn drop(&mut self) {
        // All stop at once, then each is taken off its tracepoint and waited for; then the
        // timers go and each CPU's open packet is closed on it; then come the CPUs that are
        // offline, and the end.
        self.channel.stop();
        self.probes.detach();
        self.watch = None;
        self.channel.finish();
    }
}

impl Trace {
    /// Its channel.
    pub(super) fn channel(&self) -> &Arc<Channel> {
        &self.channel
    }

    /// Describes these events, too. Returns whether that is new.
    pub(super) fn describe(&mut self, selection: &Selection) -> bool {
        self.numbers.add(selection)
    }

    /// The numbers of its events.
    pub(super) fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// Writes its metadata.
    pub(super) fn write_metadata(&self, out: &mut Text) -> core::fmt::Result {
        out.write_str(self.preamble.as_str())?;
        for (id, number) in self.numbers.iter() {
            if let Some(event) = event::get(id) {
                metadata::event(&event, number, out)?;
            }
        }
        Ok(())
    }
}
