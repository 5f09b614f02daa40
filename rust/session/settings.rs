// SPDX-License-Identifier: GPL-2.0

//! Settings of a session, for its next trace.

use super::{Filters, Selection};
use crate::channel::clock::ClockKind;
use crate::channel::config::Config;
use crate::channel::cpus::CpuSet;
use crate::channel::region::Region;
use crate::context::ContextSet;
use crate::event::Event;
use crate::source::sampled::Frequency;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::Arc;

/// The settings of a session.
pub(super) struct Settings {
    /// The clock of all its channels.
    pub(super) clock: ClockKind,
    /// The channel that gets markers, if there is one.
    pub(super) marker_channel: Option<ChannelId>,
    /// Sampling frequency.
    pub(super) sample_frequency: Frequency,
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
    pub(super) const MAX: usize = 64;

    /// The channels of a session that has `count` channels.
    pub(super) fn first(count: usize) -> impl Iterator<Item = Self> {
        (0..count as u32).map(Self)
    }

    /// The channel's stream class in the trace.
    pub(super) fn stream_id(self) -> u32 {
        self.0
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Settings of a channel.
pub(super) struct ChannelSettings {
    /// The channel's name.
    pub(super) name: Arc<CString>,
    /// Sizes, mode and periods.
    pub(super) config: Config,
    /// The CPUs that are recorded.
    pub(super) cpus: Arc<CpuSet>,
    /// Reserved memory for its buffers; [`None`]: allocated memory.
    pub(super) region: Option<Arc<Region>>,
    /// The events that are enabled.
    pub(super) selection: Selection,
    /// Filters of the enabled events.
    pub(super) filters: Filters,
    /// The contexts that are recorded with each event.
    pub(super) contexts: Arc<ContextSet>,
}

impl Settings {
    /// Settings of one channel with `config`, no event, and the best clock.
    pub(super) fn new(config: Config, first: &str) -> Result<Self> {
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
    pub(super) fn try_clone(&self) -> Result<Self> {
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
    pub(super) fn next(&self, name: &str) -> Result<ChannelId> {
        if self.channel_called(name).is_some() {
            return Err(EEXIST);
        }
        if self.channels.len() == ChannelId::MAX {
            return Err(ENOSPC);
        }
        Ok(ChannelId(self.channels.len() as u32))
    }

    /// Adds a channel without enabled events. Errors as for [`next`](Self::next).
    pub(super) fn add(&mut self, name: &str, config: Config) -> Result {
        self.next(name)?;
        self.channels.push(
            ChannelSettings {
                name: Arc::new(CString::try_from_fmt(fmt!("{name}"))?, GFP_KERNEL)?,
                config,
                cpus: Arc::new(CpuSet::All, GFP_KERNEL)?,
                region: None,
                selection: Selection::NONE,
                filters: Filters::NONE,
                contexts: Arc::new(ContextSet::NONE, GFP_KERNEL)?,
            },
            GFP_KERNEL,
        )?;
        Ok(())
    }

    /// The channels.
    pub(super) fn channels(&self) -> impl Iterator<Item = (ChannelId, &ChannelSettings)> {
        (0..).map(ChannelId).zip(&self.channels)
    }

    /// The channels, for changes.
    pub(super) fn channels_mut(&mut self) -> impl Iterator<Item = &mut ChannelSettings> {
        self.channels.iter_mut()
    }

    /// The channel with this name.
    pub(super) fn channel_called(&self, name: &str) -> Option<ChannelId> {
        let mut channels = self.channels();
        let (id, _) = channels.find(|(_, channel)| channel.is_called(name))?;
        Some(id)
    }

    /// A channel.
    pub(super) fn channel(&self, id: ChannelId) -> Result<&ChannelSettings> {
        self.channels.get(id.index()).ok_or(ENOENT)
    }

    /// A channel, for changes.
    pub(super) fn channel_mut(&mut self, id: ChannelId) -> Result<&mut ChannelSettings> {
        self.channels.get_mut(id.index()).ok_or(ENOENT)
    }
}

impl ChannelSettings {
    /// Handles the deletion of an event: it is not enabled any more, and has no filter.
    pub(super) fn forget(&mut self, event: &Event) {
        // A removal needs no memory.
        let _ = self.selection.set(event, false);
        self.filters.forget(event);
    }

    /// A copy.
    pub(super) fn try_clone(&self) -> Result<Self> {
        Ok(Self {
            name: self.name.clone(),
            config: self.config,
            cpus: self.cpus.clone(),
            region: self.region.clone(),
            selection: self.selection.try_clone()?,
            filters: self.filters.try_clone()?,
            contexts: self.contexts.clone(),
        })
    }

    fn is_called(&self, name: &str) -> bool {
        self.name.to_bytes() == name.as_bytes()
    }
}
