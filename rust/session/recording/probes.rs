// SPDX-License-Identifier: GPL-2.0

//! Probes of a trace: attached and detached when events are enabled and disabled.
//!
//! An event keeps its probe until it is disabled. A change of a filter or of the tasks changes the bits that
//! say what the probe looks at.

use crate::channel::Channel;
use crate::context::ContextSet;
use crate::probe::tasks::Tasks;
use crate::probe::{Probe, Recorder};
use crate::session::{ChannelSettings, EventNumbers, Selection};
use crate::source::attached::AttachedProbes;
use crate::source::probe_list::NewProbe;
use crate::source::sampled::Frequency;
use crate::source::session::SessionSources;
use crate::sys::privilege;
use crate::sys::rcu::Retired;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The probes that are attached for one trace.
pub(in crate::session) struct Probes {
    tasks: Arc<Tasks>,
    sample_frequency: Frequency,
    channels: KVec<RecordedChannel>,
    /// The probes of all channels.
    attached: AttachedProbes,
}

/// A channel, and the events that it records.
struct RecordedChannel {
    channel: Arc<Channel>,
    contexts: Arc<ContextSet>,
    /// The events that have a probe.
    recorded: Selection,
}

impl RecordedChannel {
    /// Whether this is the probe of an event that the channel records.
    fn has(&self, probe: &Probe) -> bool {
        let event = probe.event_of(&self.channel);
        event.is_some_and(|event| self.recorded.has_id(event))
    }
}

impl Probes {
    /// Makes a session's list without probes. Later probes record into `channels`, for a session with these
    /// `sources`, only events of `tasks`, with this sampling frequency.
    pub(in crate::session) fn new<'a>(
        tasks: &Arc<Tasks>,
        sources: &SessionSources,
        sample_frequency: Frequency,
        channels: impl Iterator<Item = (&'a Arc<Channel>, &'a Arc<ContextSet>)>,
    ) -> Result<Self> {
        let mut recorded = KVec::new();
        for (channel, contexts) in channels {
            let channel = RecordedChannel {
                channel: channel.clone(),
                contexts: contexts.clone(),
                recorded: Selection::NONE,
            };
            recorded.push(channel, GFP_KERNEL)?;
        }
        Ok(Self {
            tasks: tasks.clone(),
            sample_frequency,
            channels: recorded,
            attached: AttachedProbes::new(sources),
        })
    }

    /// Makes the channel at `index` record exactly the selection in `settings`. All its events must have
    /// `numbers`. On failure the channel records the same events as before. May sleep.
    pub(in crate::session) fn select(
        &mut self,
        index: usize,
        settings: &ChannelSettings,
        numbers: &EventNumbers,
    ) -> Result {
        let before = self.channel(index)?.recorded.try_clone()?;
        let result = self.attach(index, settings, numbers);
        let this = self.channel(index)?;
        if result.is_ok() {
            this.recorded.keep(&settings.selection);
        } else {
            this.recorded.keep(&before);
        }
        let Self {
            channels, attached, ..
        } = self;
        attached.keep(|probe| channels.iter().any(|channel| channel.has(probe)));
        result
    }

    /// The events that are recorded, and their probes.
    pub(in crate::session) fn attached(&mut self) -> &mut AttachedProbes {
        &mut self.attached
    }

    fn channel(&mut self, index: usize) -> Result<&mut RecordedChannel> {
        self.channels.get_mut(index).ok_or(ENOENT)
    }

    /// Attaches the missing probes, then changes the filters of all probes. On failure, some attached probes
    /// may not be wanted.
    fn attach(
        &mut self,
        index: usize,
        settings: &ChannelSettings,
        numbers: &EventNumbers,
    ) -> Result {
        let Self {
            tasks,
            sample_frequency,
            channels,
            attached,
        } = self;
        let RecordedChannel {
            channel,
            contexts,
            recorded,
        } = channels.get_mut(index).ok_or(ENOENT)?;
        for (event, number) in numbers.iter() {
            if !settings.selection.has(event) || recorded.has(event) {
                continue;
            }
            recorded.set(event, true)?;
            let recorder = Recorder {
                entrance: channel.entrance().clone(),
                event: event.id(),
            };
            let tasks = match event.source().is_of_all_tasks() {
                true => Arc::new(Tasks::new(), GFP_KERNEL)?,
                false => tasks.clone(),
            };
            let filter = settings.filters.get(event.id()).cloned();
            let probe = Probe::new(recorder, number, tasks, contexts.clone(), filter);
            let new = NewProbe {
                probe: Arc::new(probe, GFP_KERNEL)?,
                channel: Some(channel),
                frequency: *sample_frequency,
            };
            privilege::may_trace()?;
            event.source().attach(new, attached)?;
        }
        // No step from here on can fail.
        let mut retired = Retired::new();
        for probe in attached.iter() {
            if let Some(event) = probe.event_of(channel) {
                probe.set_filter(settings.filters.get(event), &mut retired);
            }
        }
        Ok(())
    }
}
