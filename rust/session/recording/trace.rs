// SPDX-License-Identifier: GPL-2.0

//! One trace: from a start of the session to its stop, and the packets that remain after that.

use super::metadata;
use super::probes::Probes;
use crate::abi::header::Layout;
use crate::abi::packet::Uuid;
use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::channel::aux_stats::AuxTable;
use crate::channel::clock::{ClockFollower, TraceTime};
use crate::channel::config::RecordSource;
use crate::channel::dump::ListedTrace;
use crate::channel::region::Recorded;
use crate::channel::stats::StatsTable;
use crate::channel::stopper::Stopper;
use crate::channel::{Channel, Setup};
use crate::context::ContextSet;
use crate::event::registry::Events;
use crate::probe::builtin::{Builtin, BuiltinProbe, BuiltinProbes};
use crate::probe::Probe;
use crate::session::{ChannelId, ChannelSettings, EventNumbers, Selection, Session, Settings};
use crate::sys::clock;
use crate::sys::debugfs::text::Text;
use crate::sys::errno::enodata;
use crate::sys::hotplug::HotplugWatch;
use crate::sys::rcu::Retired;
use crate::sys::system;
use core::fmt::Write;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// A trace that is being recorded. [`stop`](Self::stop) and the drop end it.
#[pin_data(PinnedDrop)]
pub(in crate::session) struct Recording {
    channels: KVec<Arc<Channel>>,
    /// Records built-in events, if the trace has a channel for them.
    builtin: Option<Arc<BuiltinProbe>>,
    /// For each built-in event the probe that records it, or none. This recording stores `builtin` there when its
    /// metadata describes the event, and removes it when it is stopped.
    builtins: Arc<BuiltinProbes>,
    stopper: Arc<Stopper>,
    time: Arc<TraceTime>,
    /// [`None`] after the stop.
    #[pin]
    attached: Mutex<Option<Attached>>,
}

/// Probes and watches of the active trace.
// Rust drops the fields in this order: probes first, then the watches, whose drop flushes.
struct Attached {
    probes: Probes,
    _watches: KVec<Pin<KBox<HotplugWatch<Channel>>>>,
    _clock: Pin<KBox<clock::ClockWatch<ClockFollower>>>,
}

/// A trace as its readers see it, while it is recorded and after that.
pub(crate) struct Trace {
    uuid: Uuid,
    /// The metadata except for the events.
    preamble: Text,
    /// The trace's entry in the list for dumps.
    listed: Arc<ListedTrace>,
    /// In the order of [`Builtin::ALL`]: non-zero if the metadata describes the event.
    describes: [SharedWord; Builtin::ALL.len()],
    /// The channel that gets the built-in events.
    marker_channel: Option<ChannelId>,
    /// The channels, in the order of [`ChannelId`].
    channels: KVec<Arc<TraceChannel>>,
}

/// A channel of a trace, as its readers see it.
#[pin_data]
pub(crate) struct TraceChannel {
    id: ChannelId,
    pub(in crate::session) layout: Layout,
    pub(in crate::session) contexts: Arc<ContextSet>,
    /// The events that the metadata describes.
    #[pin]
    numbers: Mutex<Arc<EventNumbers>>,
    #[pin]
    buffers: Mutex<Buffers>,
}

/// A channel's records.
enum Buffers {
    /// The buffers exist.
    Held(Arc<Channel>),
    /// The buffers were freed, after readers had seen the end of each stream or by a user. The counters stay.
    Freed(StatsTable, AuxTable),
}

/// Starts a trace with `settings`. A failure leaves nothing behind. May sleep.
pub(in crate::session) fn start(
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

    let text = Text::new(|text| {
        text.write_str(preamble.as_str())?;
        for ((id, _), numbers) in settings.channels().zip(&numbered) {
            write_events(id, numbers, text)?;
        }
        Ok(())
    })?;

    // Probes cannot write into a channel that takes its records from rings.
    let marker_channel = settings.marker_channel.filter(|id| {
        let channel = settings.channel(*id);
        channel.is_ok_and(|channel| channel.config.source == RecordSource::Probes)
    });
    let listed = ListedTrace::new(&session.shared.listing, uuid, text.as_str())?;

    let time = Arc::new(TraceTime::new(settings.clock), GFP_KERNEL)?;
    let (mut channels, mut readable) = (KVec::new(), KVec::new());
    for ((id, channel), numbers) in settings.channels().zip(&numbered) {
        let (layout, contexts) = (numbers.layout(), channel.contexts.clone());
        let mut setup = Setup {
            config: channel.config,
            cpus: channel.cpus.clone(),
            name: channel.name.clone(),
            layout,
            clock: settings.clock,
            time: time.clone(),
            uuid,
            stream_id: id.stream_id(),
            stopper: session.stopper.clone(),
            region: None,
            listed: listed.clone(),
            giver: match channel.config.source {
                RecordSource::Probes => None,
                RecordSource::Rings => Some(session.shared.rings.clone()),
            },
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
        marker_channel,
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
        _clock: clock::ClockWatch::new(ClockFollower::new(&time, &channels)?)?,
    };
    let builtin = match marker_channel {
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
        time,
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
    if let Some(attached) = &mut *recording.attached.lock() {
        attached.probes.attached().forget_missed();
    }
    for channel in &recording.channels {
        channel.start();
    }
    // A trigger may have stopped the recording already.
    session.stopper.close_if_stopped();
    Ok((trace, recording))
}

impl Recording {
    /// Makes a channel record exactly the selection in `settings` from now on. `numbers` must have all events of the
    /// selection. On failure the channel records the same events as before. May sleep.
    pub(in crate::session) fn select(
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

    /// Counts the events that the kernel has missed until now, unless the selection of events is being changed. May sleep.
    pub(in crate::session) fn count_missed(&self) {
        if let Some(mut attached) = self.attached.try_lock() {
            if let Some(attached) = &mut *attached {
                attached.probes.attached().count_missed();
            }
        }
    }

    /// The probes follow a changed set of tasks. May sleep.
    pub(in crate::session) fn follow_tasks(&self) -> Result {
        match &mut *self.attached.lock() {
            Some(attached) => attached.probes.attached().follow_tasks(),
            None => Ok(()),
        }
    }

    /// The probe that records a built-in event in this trace now.
    fn recorder<'a>(&'a self, builtin: Builtin, guard: &'a NoPreempt) -> Option<&'a BuiltinProbe> {
        let own = self.builtin.as_deref()?;
        let placed = self.builtins.of(builtin).get(guard)?;
        // If the next trace has started, the probe there is that of the next trace.
        core::ptr::eq(placed, own).then_some(placed)
    }

    /// Whether a built-in event would be recorded now.
    pub(in crate::session) fn records(&self, builtin: Builtin) -> bool {
        self.recorder(builtin, &NoPreempt::new()).is_some()
    }

    /// Records a built-in event from now on; the metadata must describe it. Does nothing if the trace has no
    /// channel for it, or after a stop. May sleep.
    pub(in crate::session) fn begin_builtin(&self, builtin: Builtin) {
        if self.attached.lock().is_some() {
            self.builtins.of(builtin).replace(self.builtin.clone());
        }
    }

    /// Records a marker, if markers are recorded. Returns whether the marker is in the trace, or was lost and
    /// counted. Context: process, interrupts on.
    pub(in crate::session) fn mark(&self, text: &[u8]) -> bool {
        let guard = NoPreempt::new();
        let recorder = self.recorder(Builtin::Marker, &guard);
        recorder.is_some_and(|recorder| recorder.record_marker_anywhere(text, &guard))
    }

    /// Whether `probe` records into one of this recording's channels.
    pub(in crate::session) fn has(&self, probe: &Probe) -> bool {
        let mut channels = self.channels.iter();
        channels.any(|channel| probe.event_of(channel).is_some())
    }

    /// Lets triggers stop the recording from now on, in any context. May sleep.
    pub(in crate::session) fn arm(&self) -> Result {
        self.stopper.arm(&self.channels)
    }

    /// Ends the trace: no record is accepted any more, all records are in packets, and readers see the end. May
    /// sleep.
    pub(in crate::session) fn stop(&self) {
        let Some(attached) = self.attached.lock().take() else {
            return;
        };
        // All channels stop first, which is the end of the trace. Then the probes are detached, with a wait for
        // running ones. Then the timers end, and each CPU closes its open packet. Last, `finish` closes the packets
        // of offline CPUs and lets readers see the end.
        for channel in &self.channels {
            channel.give_all();
        }
        for channel in &self.channels {
            channel.stop();
        }
        self.time.stop();
        // If this trace has recorded built-in events, the drop waits, once, for contexts that still record one.
        let mut retired = Retired::new();
        for builtin in Builtin::ALL {
            self.builtins.of(builtin).replace_later(None, &mut retired);
        }
        drop(retired);
        self.stopper.end();
        let Attached {
            probes,
            _watches: watches,
            _clock: clock,
        } = attached;
        drop(probes);
        self.time.end_at_stop();
        // The drop of the watches flushes.
        drop((watches, clock));
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
    /// The trace's identity.
    pub(crate) fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// A channel of the trace. `ENODATA`: the channel was added later.
    pub(crate) fn channel(&self, id: ChannelId) -> Result<&Arc<TraceChannel>> {
        self.channels.get(id.index()).ok_or_else(enodata)
    }

    /// All channels of the trace.
    pub(in crate::session) fn channels(&self) -> impl Iterator<Item = &Arc<TraceChannel>> {
        self.channels.iter()
    }

    /// Frees the buffers of a trace that is over, even if they were not read. May sleep.
    pub(in crate::session) fn free(&self) -> Result {
        self.channels().try_for_each(|channel| channel.free())
    }

    /// Frees the buffers that are in reserved memory which `settings` needs for the next trace. May sleep.
    pub(in crate::session) fn leave_regions(&self, settings: &Settings) -> Result {
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

    /// Copies the metadata to the places where it can be read after a crash of the kernel. `ENOSPC`: it does not
    /// fit into the reserved memory any more. May sleep.
    pub(in crate::session) fn save_metadata(&self) -> Result {
        let text = Text::new(|text| self.write_metadata(text))?;
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

    /// Makes the metadata describe a built-in event from now on. Returns whether the trace has a channel for
    /// such events.
    pub(in crate::session) fn describe_builtin(&self, builtin: Builtin) -> bool {
        for (known, describes) in Builtin::ALL.iter().zip(&self.describes) {
            if *known == builtin {
                describes.store(1);
            }
        }
        self.marker_channel.is_some()
    }

    /// Writes the trace's metadata.
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
    /// The channel of the session.
    pub(in crate::session) fn id(&self) -> ChannelId {
        self.id
    }

    /// The events whose records the channel may have.
    pub(in crate::session) fn numbers(&self) -> Arc<EventNumbers> {
        self.numbers.lock().clone()
    }

    /// The buffers. `ENODATA` if they were freed.
    pub(crate) fn buffers(&self) -> Result<Arc<Channel>> {
        match &*self.buffers.lock() {
            Buffers::Held(channel) => Ok(channel.clone()),
            Buffers::Freed(..) => Err(enodata()),
        }
    }

    /// Writes the counters: the text of the `stats` file.
    pub(crate) fn write_stats(&self, out: &mut Text) -> Result {
        // The lock is released: the counters need the readers' locks.
        let channel = match &*self.buffers.lock() {
            Buffers::Held(channel) => channel.clone(),
            Buffers::Freed(counted, _) => return Ok(counted.write(out)?),
        };
        Ok(StatsTable::of(&channel)?.write(out)?)
    }

    /// Writes the counters of the AUX areas: the text of the `aux_stats` file.
    pub(crate) fn write_aux_stats(&self, out: &mut Text) -> Result {
        let channel = match &*self.buffers.lock() {
            Buffers::Held(channel) => channel.clone(),
            Buffers::Freed(_, counted) => return Ok(counted.write(out)?),
        };
        Ok(AuxTable::of(&channel)?.write(out)?)
    }

    /// Frees the buffers of a trace that is over. A reader with an open stream can continue; the memory of that
    /// stream is freed when the reader closes it.
    fn free(&self) -> Result {
        let channel = self.buffers().ok();
        if let Some(channel) = channel {
            let counted = Buffers::Freed(StatsTable::of(&channel)?, AuxTable::of(&channel)?);
            // Dropped after the lock is released.
            let _held = core::mem::replace(&mut *self.buffers.lock(), counted);
        }
        Ok(())
    }

    /// Frees the buffers if the trace is over and readers have seen the end of each stream. Called when a
    /// reader has closed its stream. May sleep.
    pub(crate) fn free_if_read(&self) {
        if self.buffers().is_ok_and(|channel| channel.is_read()) {
            // Without memory for the counters the buffers stay, until the next start.
            let _ = self.free();
        }
    }

    /// Restores an earlier list of events. The events that were added since are not recorded.
    pub(in crate::session) fn forget_all_but(&self, known: Arc<EventNumbers>) {
        let since = core::mem::replace(&mut *self.numbers.lock(), known);
        drop(since);
    }

    /// Adds these events to the description. Returns their numbers, and whether some are new.
    pub(in crate::session) fn describe(
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
