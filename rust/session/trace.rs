// SPDX-License-Identifier: GPL-2.0

//! One trace: from a start of the session to its stop, and what stays of it.

use super::probes::Probes;
use super::{metadata, Numbers, Selection, Session, Settings};
use crate::abi::packet::Uuid;
use crate::channel::stats::Table;
use crate::channel::{Channel, Setup};
use crate::event;
use crate::sys::debugfs::text::Text;
use crate::sys::errno::enodata;
use crate::sys::hotplug::Watch;
use crate::sys::system;
use core::fmt::Write;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// What records a trace. [`stop`](Self::stop) ends it; so does dropping it.
#[pin_data(PinnedDrop)]
pub(super) struct Recording {
    channel: Arc<Channel>,
    /// None once it was stopped.
    #[pin]
    attached: Mutex<Option<Attached>>,
}

/// What fills the buffers.
// Fields in the order of their end: probes before the watch, which flushes.
struct Attached {
    probes: Probes,
    _watch: Pin<KBox<Watch<Channel>>>,
}

/// What a reader can have of a trace, while it is recorded and after.
#[pin_data]
pub(crate) struct Trace {
    uuid: Uuid,
    /// The metadata but for the events.
    preamble: Text,
    /// The events that the metadata describes.
    #[pin]
    numbers: Mutex<Arc<Numbers>>,
    #[pin]
    buffers: Mutex<Buffers>,
}

/// A trace's records.
enum Buffers {
    /// In memory.
    Held(Arc<Channel>),
    /// Gone, for they were read, or somebody freed them. What was counted stays.
    Freed(Table),
}

/// Begins a trace of the events in `selection`. Failing, leaves nothing behind. May sleep.
pub(super) fn start(
    session: &Session,
    settings: &Settings,
    selection: &Selection,
) -> Result<(Arc<Trace>, Arc<Recording>)> {
    let numbers = Arc::new(Numbers::new(selection)?, GFP_KERNEL)?;
    let setup = Setup {
        config: settings.config,
        layout: numbers.layout(),
        clock: settings.clock,
        uuid: system::random_uuid(),
    };
    let uuid = setup.uuid;
    let preamble = metadata::preamble(session, &setup)?;
    let channel = Arc::new(Channel::new(setup)?, GFP_KERNEL)?;
    let (described, held) = (numbers.clone(), Buffers::Held(channel.clone()));
    let trace = pin_init!(Trace {
        uuid,
        preamble,
        numbers <- new_mutex!(described),
        buffers <- new_mutex!(held),
    });
    let trace = Arc::pin_init(trace, GFP_KERNEL)?;
    let attached = Attached {
        probes: Probes::new(channel.clone())?,
        _watch: Watch::new(&session.hotplug, channel.clone())?,
    };
    let recording = pin_init!(Recording {
        channel,
        attached <- new_mutex!(Some(attached)),
    });
    let recording = Arc::pin_init(recording, GFP_KERNEL)?;
    recording.select(session, selection, &numbers)?;
    recording.channel.start();
    Ok((trace, recording))
}

impl Recording {
    /// Records exactly the events in `selection` from now on; all of them have `numbers`. May
    /// sleep.
    pub(super) fn select(
        &self,
        session: &Session,
        selection: &Selection,
        numbers: &Numbers,
    ) -> Result {
        match &mut *self.attached.lock() {
            Some(attached) => attached
                .probes
                .select(&session.tracepoints, selection, numbers),
            None => Ok(()),
        }
    }

    /// Ends the trace: nothing is recorded any more, everything is in packets, and readers see
    /// the end. May sleep.
    pub(super) fn stop(&self) {
        let Some(mut attached) = self.attached.lock().take() else {
            return;
        };
        // All stop at once, then each is taken off its tracepoint and waited for; then the
        // timers go and each CPU's open packet is closed on it; then come the CPUs that are
        // offline, and the end.
        self.channel.stop();
        attached.probes.detach();
        drop(attached);
        self.channel.finish();
    }
}

#[pinned_drop]
impl PinnedDrop for Recording {
    fn drop(self: Pin<&mut Self>) {
        self.stop();
    }
}

impl Trace {
    /// Its identity.
    pub(crate) fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// Its buffers. `ENODATA` if they were freed.
    pub(crate) fn channel(&self) -> Result<Arc<Channel>> {
        match &*self.buffers.lock() {
            Buffers::Held(channel) => Ok(channel.clone()),
            Buffers::Freed(_) => Err(enodata()),
        }
    }

    /// Writes what was counted: the text of the `stats` file.
    pub(crate) fn write_stats(&self, out: &mut Text) -> Result {
        // Without the lock: counting looks at readers' locks.
        let channel = match &*self.buffers.lock() {
            Buffers::Held(channel) => channel.clone(),
            Buffers::Freed(counted) => return Ok(counted.write(out)?),
        };
        Ok(Table::of(&channel)?.write(out)?)
    }

    /// Frees the buffers of a trace that is over, and with them what nobody has read. A reader
    /// who has a stream open reads on; its memory goes when it closes. May sleep.
    pub(super) fn free(&self) -> Result {
        let channel = self.channel().ok();
        if let Some(channel) = channel {
            let counted = Table::of(&channel)?;
            // Dropped here, not under the lock.
            let _held = core::mem::replace(&mut *self.buffers.lock(), Buffers::Freed(counted));
        }
        Ok(())
    }

    /// Frees the buffers if the trace is over and readers have seen the end of each stream. To be
    /// called when one has closed. May sleep.
    pub(crate) fn free_if_read(&self) {
        if self.channel().is_ok_and(|channel| channel.is_read()) {
            // Without memory for the counts they stay as they are, until the next start.
            let _ = self.free();
        }
    }

    /// Describes these events, too. Their numbers, and whether some are new.
    pub(super) fn describe(&self, selection: &Selection) -> Result<(Arc<Numbers>, bool)> {
        let known = self.numbers.lock().clone();
        let mut numbers = known.try_clone()?;
        if !numbers.add(selection) {
            return Ok((known, false));
        }
        let numbers = Arc::new(numbers, GFP_KERNEL)?;
        *self.numbers.lock() = numbers.clone();
        Ok((numbers, true))
    }

    /// Writes its metadata.
    pub(crate) fn write_metadata(&self, out: &mut Text) -> Result {
        let numbers = self.numbers.lock().clone();
        out.write_str(self.preamble.as_str())?;
        for (id, number) in numbers.iter() {
            if let Some(event) = event::get(id) {
                metadata::event(&event, number, out)?;
            }
        }
        Ok(())
    }
}
