// SPDX-License-Identifier: GPL-2.0

//! One trace: from a start of the session to its stop, and what stays of it.

use super::probes::Probes;
use super::settings::{ChannelSettings, Settings};
use super::{metadata, ChannelId, EventNumbers, Selection, Session};
use crate::abi::header::Layout;
use crate::abi::packet::Uuid;
use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::channel::aux_stats::AuxTable;
use crate::channel::clock::{ClockFollower, Missed};
use crate::channel::dump::ListedTrace;
use crate::channel::region::Recorded;
use crate::channel::stats::StatsTable;
use crate::channel::stopper::Stopper;
use crate::channel::{Channel, Setup};
use crate::context::ContextSet;
use crate::event::registry::Events;
use crate::probe::builtin::{Builtin, BuiltinProbe, BuiltinProbes};
use crate::probe::Probe;
use crate::sys::clock;
use crate::sys::debugfs::text::Text;
use crate::sys::errno::enodata;
use crate::sys::hotplug::HotplugWatch;
use crate::sys::rcu::Retired;
use crate::sys::system;
use core::fmt::Write;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// What records a trace. [`stop`](Self::stop) ends it; so does dropping it.
#[pin_data(PinnedDrop)]
pub(super) struct Recording {
    channels: KVec<Arc<Channel>>,
    /// What records built-in events, if they are recorded.
    builtin: Option<Arc<BuiltinProbe>>,
    /// The session's, which has the same for each from when it is described until the recording is
    /// stopped.
    builtins: Arc<BuiltinProbes>,
    stopper: Arc<Stopper>,
    /// None once it was stopped.
    #[pin]
    attached: Mutex<Option<Attached>>,
}

/// What fills the buffers.
// Fields in the order of their end: probes before the watches, which flush.
struct Attached {
    probes: Probes,
    _watches: KVec<Pin<KBox<HotplugWatch<Channel>>>>,
    _clock: Pin<KBox<clock::ClockWatch<ClockFollower>>>,
}

/// What a reader can have of a trace, while it is recorded and after.
pub(crate) struct Trace {
    uuid: Uuid,
    /// The metadata but for the events.
    preamble: Text,
    /// What of it is listed for who reads a dump.
    listed: Arc<ListedTrace>,
    /// Not 0 if the metadata describes the built-in event.
    describes: [SharedWord; Builtin::ALL.len()],
    /// The channel that has these.
    marker_channel: Option<ChannelId>,
    /// By [`ChannelId`].
    channels: KVec<Arc<TraceChannel>>,
}

/// What a reader can have of a channel of a trace.
#[pin_data]
pub(crate) struct TraceChannel {
    id: ChannelId,
    pub(super) layout: Layout,
    pub(super) contexts: Arc<ContextSet>,
    /// The events that the metadata describes.
    #[pin]
    numbers: Mutex<Arc<EventNumbers>>,
    #[pin]
    buffers: Mutex<Buffers>,
}

/// A channel's records.
enum Buffers {
    /// In memory.
    Held(Arc<Channel>),
    /// Gone, for they were read, or somebody freed them. What was counted stays.
    Freed(StatsTable, AuxTable),
}

/// Begins a trace that goes by `settings`. Failing, leaves nothing behind. May sleep.
pub(super) fn start(
    session: &Session,
    settings: &Settings,
) -> Result<(Arc<Trace>, Arc<Recording>)> {
    let available = session.available();
    let uuid = system::random_uuid();
    let (mut streams, mut numbered) = (KVec::new(), KVec::new());
    for (_, channel) in settings.channels() {
        let numbers = EventNumbers::NONE.with(&available, &channel.selection)?;
        let numbers = Arc::new(numbers.unwrap_or(EventNumbers::NONE), GFP_KERNEL)?;
        streams.push((numbers.layout(), channel.contexts.clone()), GFP_KERNEL)?;
        numbered.push(numbers, GFP_KERNEL)?;
    }
    let preamble = metadata::preamble(session, &uuid, settings.clock, &streams)?;

    let mut text = Text::new();
    text.write_str(preamble.as_str())?;
    for ((id, _), numbers) in settings.channels().zip(&numbered) {
        write_events(id, numbers, &mut text)?;
    }

    let listed = ListedTrace::new(&session.shared.listing, uuid, text.as_str())?;

    let missed = Arc::new(Missed::new(settings.clock), GFP_KERNEL)?;
    let (mut channels, mut readable) = (KVec::new(), KVec::new());
    for ((id, channel), numbers) in settings.channels().zip(&numbered) {
        let (layout, contexts) = (numbers.layout(), channel.contexts.clone());
        let mut setup = Setup {
            config: channel.config,
            cpus: channel.cpus.clone(),
            name: channel.name.clone(),
            layout,
            clock: settings.clock,
            missed: missed.clone(),
            uuid,
            stream_id: id.stream_id(),
            stopper: session.stopper.clone(),
            region: None,
            listed: listed.clone(),
        };
        if let Some(region) = &channel.region {
            let boot_id = session.shared.boot_id;
            let recorded = Recorded::new(region, &setup, boot_id, text.as_str());
            setup.region = Some(recorded.map_err(|why| session.refuse_region(region, why))?);
        }
        let channel = Arc::new(Channel::new(setup)?, GFP_KERNEL)?;
        let (described, held) = (numbers.clone(), Buffers::Held(channel.clone()));
        let trace = pin_init!(TraceChannel {
            id,
            layout,
            contexts,
            numbers <- new_mutex!(described),
            buffers <- new_mutex!(held),
        });
        readable.push(Arc::pin_init(trace, GFP_KERNEL)?, GFP_KERNEL)?;
        channels.push(channel, GFP_KERNEL)?;
    }
    let trace = Trace {
        uuid,
        preamble,
        listed,
        describes: [const { SharedWord::new(0) }; Builtin::ALL.len()],
        marker_channel: settings.marker_channel,
        channels: readable,
    };
    let trace = Arc::new(trace, GFP_KERNEL)?;

    let mut watches = KVec::new();
    for channel in &channels {
        let watch = HotplugWatch::new(&session.shared.hotplug, channel.clone())?;
        watches.push(watch, GFP_KERNEL)?;
    }
    let attached = Attached {
        probes: Probes::new(
            &session.tasks,
            &session.sources,
            settings.sample_frequency,
            Iterator::zip(
                channels.iter(),
                settings.channels().map(|(_, channel)| &channel.contexts),
            ),
        )?,
        _watches: watches,
        _clock: clock::ClockWatch::new(ClockFollower::new(&missed, &channels)?)?,
    };
    let builtin = match settings.marker_channel {
        Some(id) => {
            let channel = channels.get(id.index()).ok_or(ENOENT)?;
            let probe = BuiltinProbe::new(channel, &settings.channel(id)?.contexts);
            Some(Arc::new(probe, GFP_KERNEL)?)
        }
        None => None,
    };
    let recording = pin_init!(Recording {
        channels,
        builtin,
        builtins: session.builtins.clone(),
        stopper: session.stopper.clone(),
        attached <- new_mutex!(Some(attached)),
    });
    let recording = Arc::pin_init(recording, GFP_KERNEL)?;
    for ((id, channel), numbers) in settings.channels().zip(&numbered) {
        recording.select(id, channel, numbers)?;
    }
    if session.trigger_count() != 0 {
        recording.arm()?;
    }
    for builtin in session.builtins_of_triggers() {
        if trace.describe_builtin(builtin) {
            trace.save_metadata()?;
            recording.begin_builtin(builtin);
        }
    }
    for channel in &recording.channels {
        channel.start();
    }
    // A trigger may have been faster.
    session.stopper.close_if_stopped();
    Ok((trace, recording))
}

impl Recording {
    /// Has a channel record exactly what `settings` choose from now on; all its events have
    /// `numbers`. On failure it records what it did before. May sleep.
    pub(super) fn select(
        &self,
        channel: ChannelId,
        settings: &ChannelSettings,
        numbers: &EventNumbers,
    ) -> Result {
        match &mut *self.attached.lock() {
            Some(attached) => attached.probes.select(channel.index(), settings, numbers),
            None => Ok(()),
        }
    }

    /// What records a built-in event now, in this trace.
    fn recorder<'a>(&'a self, builtin: Builtin, guard: &'a NoPreempt) -> Option<&'a BuiltinProbe> {
        let own = self.builtin.as_deref()?;
        let placed = self.builtins.of(builtin).get(guard)?;
        // It may be that of the next trace.
        core::ptr::eq(placed, own).then_some(placed)
    }

    /// Whether a built-in event would be recorded now.
    pub(super) fn records(&self, builtin: Builtin) -> bool {
        self.recorder(builtin, &NoPreempt::new()).is_some()
    }

    /// Has a built-in event recorded from now on; the metadata describes it. Nothing to do where they
    /// are not recorded, or if it was stopped. May sleep.
    pub(super) fn begin_builtin(&self, builtin: Builtin) {
        if self.attached.lock().is_some() {
            self.builtins.of(builtin).replace(self.builtin.clone());
        }
    }

    /// Records a marker if they are recorded: whether it is in the trace now, or was lost and counted.
    /// Context: process, interrupts on.
    pub(super) fn mark(&self, text: &[u8]) -> bool {
        let guard = NoPreempt::new();
        let recorder = self.recorder(Builtin::Marker, &guard);
        recorder.is_some_and(|recorder| recorder.record_marker_anywhere(text, &guard))
    }

    /// Whether this is a probe of one of its channels.
    pub(super) fn has(&self, probe: &Probe) -> bool {
        let mut channels = self.channels.iter();
        channels.any(|channel| probe.event_of(channel).is_some())
    }

    /// From now on triggers can stop it, in any context. May sleep.
    pub(super) fn arm(&self) -> Result {
        self.stopper.arm(&self.channels)
    }

    /// Ends the trace: nothing is recorded any more, everything is in packets, and readers see
    /// the end. May sleep.
    pub(super) fn stop(&self) {
        let Some(attached) = self.attached.lock().take() else {
            return;
        };
        // All stop at once, then each is taken off its tracepoint and waited for; then the
        // timers go and each CPU's open packet is closed on it; then come the CPUs that are
        // offline, and the end.
        for channel in &self.channels {
            channel.stop();
        }
        // Waits, once, for who is recording one, if there ever was one.
        let mut retired = Retired::new();
        for builtin in Builtin::ALL {
            self.builtins.of(builtin).replace_later(None, &mut retired);
        }
        drop(retired);
        self.stopper.end();
        drop(attached);
        for channel in &self.channels {
            channel.finish();
        }
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

    /// What it has of a channel. `ENODATA`: the channel was added later.
    pub(crate) fn channel(&self, id: ChannelId) -> Result<&Arc<TraceChannel>> {
        self.channels.get(id.index()).ok_or_else(enodata)
    }

    /// What it has of each channel.
    pub(super) fn channels(&self) -> impl Iterator<Item = &Arc<TraceChannel>> {
        self.channels.iter()
    }

    /// Frees the buffers of a trace that is over, and with them what nobody has read. May sleep.
    pub(super) fn free(&self) -> Result {
        self.channels().try_for_each(|channel| channel.free())
    }

    /// Frees the buffers of channels that are in regions where `settings` want others. May sleep.
    pub(super) fn leave_regions(&self, settings: &Settings) -> Result {
        for channel in self.channels() {
            let Ok(buffers) = channel.buffers() else {
                continue;
            };
            let Some(recorded) = &buffers.setup().region else {
                continue;
            };
            let mut wanted = settings
                .channels()
                .filter_map(|(_, channel)| channel.region.as_ref());
            if wanted.any(|region| Arc::ptr_eq(region, recorded.region())) {
                channel.free()?;
            }
        }
        Ok(())
    }

    /// Has the metadata also where it is read when the kernel is gone. `ENOSPC`: it does not fit into reserved
    /// memory any more. May sleep.
    pub(super) fn save_metadata(&self) -> Result {
        let mut text = Text::new();
        self.write_metadata(&mut text)?;
        for channel in self.channels() {
            let Ok(buffers) = channel.buffers() else {
                continue;
            };
            if let Some(recorded) = &buffers.setup().region {
                recorded.save_metadata(text.as_str())?;
            }
        }
        self.listed.set_metadata(text.as_str())
    }

    /// Has its metadata describe a built-in event from now on; not if no channel has them.
    pub(super) fn describe_builtin(&self, builtin: Builtin) -> bool {
        for (known, describes) in Builtin::ALL.iter().zip(&self.describes) {
            if *known == builtin {
                describes.store(1);
            }
        }
        self.marker_channel.is_some()
    }

    /// Writes its metadata.
    pub(crate) fn write_metadata(&self, out: &mut Text) -> Result {
        out.write_str(self.preamble.as_str())?;
        for channel in &self.channels {
            write_events(channel.id, &channel.numbers(), out)?;
        }
        let Some(channel) = self.marker_channel else {
            return Ok(());
        };
        for (builtin, describes) in Builtin::ALL.into_iter().zip(&self.describes) {
            if describes.load() != 0 {
                metadata::builtin(builtin, channel.stream_id(), out)?;
            }
        }
        Ok(())
    }
}

/// Writes the descriptions of a channel's events.
fn write_events(channel: ChannelId, numbers: &EventNumbers, out: &mut Text) -> Result {
    for (event, number) in numbers.iter() {
        metadata::event(event, channel.stream_id(), number, out)?;
    }
    Ok(())
}

impl TraceChannel {
    /// Which channel of the session this is.
    pub(super) fn id(&self) -> ChannelId {
        self.id
    }

    /// The events that its records may be of.
    pub(super) fn numbers(&self) -> Arc<EventNumbers> {
        self.numbers.lock().clone()
    }

    /// The buffers. `ENODATA` if they were freed.
    pub(crate) fn buffers(&self) -> Result<Arc<Channel>> {
        match &*self.buffers.lock() {
            Buffers::Held(channel) => Ok(channel.clone()),
            Buffers::Freed(..) => Err(enodata()),
        }
    }

    /// Writes what was counted: the text of the `stats` file.
    pub(crate) fn write_stats(&self, out: &mut Text) -> Result {
        // Without the lock: counting looks at readers' locks.
        let channel = match &*self.buffers.lock() {
            Buffers::Held(channel) => channel.clone(),
            Buffers::Freed(counted, _) => return Ok(counted.write(out)?),
        };
        Ok(StatsTable::of(&channel)?.write(out)?)
    }

    /// The same of the AUX areas: the text of the `aux_stats` file.
    pub(crate) fn write_aux_stats(&self, out: &mut Text) -> Result {
        let channel = match &*self.buffers.lock() {
            Buffers::Held(channel) => channel.clone(),
            Buffers::Freed(_, counted) => return Ok(counted.write(out)?),
        };
        Ok(AuxTable::of(&channel)?.write(out)?)
    }

    /// Frees the buffers if the trace is over. A reader who has a stream open reads on; its memory
    /// goes when it closes.
    fn free(&self) -> Result {
        let channel = self.buffers().ok();
        if let Some(channel) = channel {
            let counted = Buffers::Freed(StatsTable::of(&channel)?, AuxTable::of(&channel)?);
            // Dropped here, not under the lock.
            let _held = core::mem::replace(&mut *self.buffers.lock(), counted);
        }
        Ok(())
    }

    /// Frees the buffers if the trace is over and readers have seen the end of each stream. To be
    /// called when one has closed. May sleep.
    pub(crate) fn free_if_read(&self) {
        if self.buffers().is_ok_and(|channel| channel.is_read()) {
            // Without memory for the counts they stay as they are, until the next start.
            let _ = self.free();
        }
    }

    /// Describes these events again, and no others: those that were described since are not recorded.
    pub(super) fn forget_all_but(&self, known: Arc<EventNumbers>) {
        let since = core::mem::replace(&mut *self.numbers.lock(), known);
        drop(since);
    }

    /// Describes these events, too. Their numbers, and whether some are new.
    pub(super) fn describe(
        &self,
        events: &Events,
        selection: &Selection,
    ) -> Result<(Arc<EventNumbers>, bool)> {
        let known = self.numbers();
        let Some(numbers) = known.with(events, selection)? else {
            return Ok((known, false));
        };
        let numbers = Arc::new(numbers, GFP_KERNEL)?;
        *self.numbers.lock() = numbers.clone();
        Ok((numbers, true))
    }
}
