// SPDX-License-Identifier: GPL-2.0

//! Settings of a session, for its next trace.

use super::standing::StandingPatterns;
use crate::channel::clock::ClockKind;
use crate::channel::config::Config;
use crate::channel::cpus::CpuSet;
use crate::channel::region::Region;
use crate::context::ContextSet;
use crate::event::Event;
use crate::session::{Filters, Selection};
use crate::source::sampled::Frequency;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::Arc;

/// The settings of a session.
pub(in crate::session) struct Settings {
    /// The clock of all its channels.
    pub(in crate::session) clock: ClockKind,
    /// The channel that gets markers, if there is one.
    pub(in crate::session) marker_channel: Option<ChannelId>,
    /// Sampling frequency.
    pub(in crate::session) sample_frequency: Frequency,
    /// By [`ChannelId`]. There is at least one channel.
    channels: KVec<ChannelSettings>,
}

/// A channel of a session, by its index. The channel stays the same from trace to trace.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChannelId(u32);

impl ChannelId {
    /// The channel that each session has.
    pub(crate) const FIRST: Self = Self(0);

    /// Maximum number of channels of a session.
    pub(in crate::session) const MAX: usize = 64;

    /// The channels of a session that has `count` channels.
    pub(in crate::session) fn first(count: usize) -> impl Iterator<Item = Self> {
        (0..count as u32).map(Self)
    }

    /// The channel's stream class in the trace.
    pub(in crate::session) fn stream_id(self) -> u32 {
        self.0
    }

    pub(in crate::session) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Settings of a channel.
pub(in crate::session) struct ChannelSettings {
    /// The channel's name.
    pub(in crate::session) name: Arc<CString>,
    /// Sizes, mode and periods.
    pub(in crate::session) config: Config,
    /// The CPUs that are recorded.
    pub(in crate::session) cpus: Arc<CpuSet>,
    /// Reserved memory for its buffers; [`None`]: allocated memory.
    pub(in crate::session) region: Option<Arc<Region>>,
    /// The events that are enabled.
    pub(in crate::session) selection: Selection,
    /// The patterns that enable events of programs when these are registered.
    pub(in crate::session) standing: StandingPatterns,
    /// Filters of the enabled events.
    pub(in crate::session) filters: Filters,
    /// The contexts that are recorded with each event.
    pub(in crate::session) contexts: Arc<ContextSet>,
}

impl Settings {
    /// Settings of one channel with `config`, no event, and the best clock.
    pub(in crate::session) fn new(config: Config, first: &str) -> Result<Self> {
        let mut settings = Self {
            clock: ClockKind::best(),
            marker_channel: Some(ChannelId::FIRST),
            sample_frequency: Frequency::DEFAULT,
            channels: KVec::new(),
        };
        settings.add(first, config)?;
        Ok(settings)
    }

    /// A copy.
    pub(in crate::session) fn try_clone(&self) -> Result<Self> {
        let mut channels = KVec::with_capacity(self.channels.len(), GFP_KERNEL)?;
        for channel in &self.channels {
            channels.push(channel.try_clone()?, GFP_KERNEL)?;
        }
        Ok(Self {
            clock: self.clock,
            marker_channel: self.marker_channel,
            sample_frequency: self.sample_frequency,
            channels,
        })
    }

    /// The id of the next channel, if that may have this name. Errors: `EEXIST` if the name is in use, `ENOSPC` if there
    /// are too many channels.
    pub(in crate::session) fn next(&self, name: &str) -> Result<ChannelId> {
        if self.channel_called(name).is_some() {
            return Err(EEXIST);
        }
        if self.channels.len() == ChannelId::MAX {
            return Err(ENOSPC);
        }
        Ok(ChannelId(self.channels.len() as u32))
    }

    /// Adds a channel without enabled events. Errors as for [`next`](Self::next).
    pub(in crate::session) fn add(&mut self, name: &str, config: Config) -> Result {
        self.next(name)?;
        self.channels.push(
            ChannelSettings {
                name: Arc::new(CString::try_from_fmt(fmt!("{name}"))?, GFP_KERNEL)?,
                config,
                cpus: Arc::new(CpuSet::All, GFP_KERNEL)?,
                region: None,
                selection: Selection::NONE,
                standing: StandingPatterns::NONE,
                filters: Filters::NONE,
                contexts: Arc::new(ContextSet::NONE, GFP_KERNEL)?,
            },
            GFP_KERNEL,
        )?;
        Ok(())
    }

    /// The channels.
    pub(in crate::session) fn channels(
        &self,
    ) -> impl Iterator<Item = (ChannelId, &ChannelSettings)> {
        (0..).map(ChannelId).zip(&self.channels)
    }

    /// The channels, for changes.
    pub(in crate::session) fn channels_mut(
        &mut self,
    ) -> impl Iterator<Item = &mut ChannelSettings> {
        self.channels.iter_mut()
    }

    /// The channel with this name.
    pub(in crate::session) fn channel_called(&self, name: &str) -> Option<ChannelId> {
        let mut channels = self.channels();
        let (id, _) = channels.find(|(_, channel)| channel.is_called(name))?;
        Some(id)
    }

    /// A channel.
    pub(in crate::session) fn channel(&self, id: ChannelId) -> Result<&ChannelSettings> {
        self.channels.get(id.index()).ok_or(ENOENT)
    }

    /// A channel, for changes.
    pub(in crate::session) fn channel_mut(
        &mut self,
        id: ChannelId,
    ) -> Result<&mut ChannelSettings> {
        self.channels.get_mut(id.index()).ok_or(ENOENT)
    }
}

impl ChannelSettings {
    /// Whether no event is enabled, and none will be when it is registered.
    pub(in crate::session) fn has_no_event(&self) -> bool {
        self.selection.is_empty() && self.standing.is_empty()
    }

    /// Handles the deletion of an event: it is not enabled any more, and has no filter.
    pub(in crate::session) fn forget(&mut self, event: &Event) {
        // A removal needs no memory.
        let _ = self.selection.set(event, false);
        self.filters.forget(event);
    }

    /// A copy.
    pub(in crate::session) fn try_clone(&self) -> Result<Self> {
        Ok(Self {
            name: self.name.clone(),
            config: self.config,
            cpus: self.cpus.clone(),
            region: self.region.clone(),
            selection: self.selection.try_clone()?,
            standing: self.standing.try_clone()?,
            filters: self.filters.try_clone()?,
            contexts: self.contexts.clone(),
        })
    }

    fn is_called(&self, name: &str) -> bool {
        self.name.to_bytes() == name.as_bytes()
    }
}
