// SPDX-License-Identifier: GPL-2.0

//! The probes of a trace: attaching and detaching them as events are enabled.
//!
//! An event keeps its probe until it is disabled. A change of a filter, or of whose events are recorded,
//! changes what the probe looks at.

use super::settings::ChannelSettings;
use super::{EventNumbers, Selection};
use crate::channel::Channel;
use crate::context::ContextSet;
use crate::event::Event;
use crate::probe::filter::Filter;
use crate::probe::tasks::Tasks;
use crate::probe::{Probe, Recorder};
use crate::source::listed::ListedSource;
use crate::source::sampled::Frequency;
use crate::source::syscall::{self, CallProbes};
use crate::source::{EventSource, SessionSources};
use crate::sys::rcu::Retired;
use crate::sys::tracepoint::{self, Attachments};
use kernel::prelude::*;
use kernel::sync::Arc;

/// The probes that are attached for one trace.
pub(super) struct Probes {
    channels: KVec<ChannelProbes>,
    attached: Attached,
}

/// Probes that are attached to tracepoints, for all channels.
struct Attached {
    events: Attachments<Probe>,
    /// One per channel and direction: all system calls that the channel records, or recorded before.
    calls: Attachments<CallProbes>,
}

/// Probes and settings of a channel.
struct ChannelProbes {
    channel: Arc<Channel>,
    tasks: Arc<Tasks>,
    sources: SessionSources,
    sample_frequency: Frequency,
    contexts: Arc<ContextSet>,
    /// The events that have a probe.
    recorded: Selection,
    /// Probes of events that keep a list of them.
    listed: KVVec<(Arc<Event>, Arc<Probe>)>,
}

/// The events that a channel shall record.
struct Wanted<'a> {
    settings: &'a ChannelSettings,
    /// All events that shall be recorded have one.
    numbers: &'a EventNumbers,
}

impl Wanted<'_> {
    fn events(&self) -> impl Iterator<Item = (&Arc<Event>, u32)> {
        let selection = &self.settings.selection;
        let events = self.numbers.iter();
        events.filter(|(event, _)| selection.has(event))
    }

    fn filter(&self, event: &Event) -> Option<&Arc<Filter>> {
        self.settings.filters.get(event.id())
    }
}

impl Probes {
    /// None yet; what they will record for a session that has these of its own, of `tasks` alone, and sampled
    /// so often, goes to `channels`.
    pub(super) fn new<'a>(
        tasks: &Arc<Tasks>,
        sources: &SessionSources,
        sample_frequency: Frequency,
        channels: impl Iterator<Item = (&'a Arc<Channel>, &'a Arc<ContextSet>)>,
    ) -> Result<Self> {
        let mut probes = Self {
            channels: KVec::new(),
            attached: Attached {
                events: Attachments::new(),
                calls: Attachments::new(),
            },
        };
        for (channel, contexts) in channels {
            let channel = ChannelProbes {
                channel: channel.clone(),
                tasks: tasks.clone(),
                sources: sources.clone(),
                sample_frequency,
                contexts: contexts.clone(),
                recorded: Selection::NONE,
                listed: KVVec::new(),
            };
            probes.channels.push(channel, GFP_KERNEL)?;
        }
        Ok(probes)
    }

    /// Has the channel at `index` record exactly what `settings` choose; all its events have
    /// `numbers`. On failure it records what it did before. May sleep.
    pub(super) fn select(
        &mut self,
        index: usize,
        settings: &ChannelSettings,
        numbers: &EventNumbers,
    ) -> Result {
        let this = self.channels.get_mut(index).ok_or(ENOENT)?;
        let wanted = Wanted { settings, numbers };
        let recorded = this.recorded.try_clone()?;
        if let Err(error) = this.attach(&mut self.attached, &wanted) {
            this.recorded.keep(&recorded);
            this.detach_others(&mut self.attached);
            return Err(error);
        }
        // No step from here on can fail.
        let mut retired = Retired::new();
        for probe in self.attached.iter() {
            if let Some(event) = probe.event_of(&this.channel) {
                probe.set_filter(settings.filters.get(event), &mut retired);
            }
        }
        for (event, probe) in &this.listed {
            probe.set_filter(wanted.filter(event), &mut retired);
        }
        this.recorded.keep(&settings.selection);
        this.detach_others(&mut self.attached);
        Ok(())
    }

    /// Detaches all, and waits until none runs. May sleep.
    pub(super) fn detach(&mut self) {
        for channel in &mut self.channels {
            channel.recorded = Selection::NONE;
            channel.detach_listed();
        }
        let Attached { events, calls } = &mut self.attached;
        tracepoint::detach(&mut [&mut events.picked(|_| true), &mut calls.picked(|_| true)]);
    }
}

impl Attached {
    /// All probes.
    fn iter(&self) -> impl Iterator<Item = &Probe> {
        let events = self.events.iter().map(|probe| &**probe);
        let calls = self.calls.iter().flat_map(|calls| calls.iter());
        Iterator::chain(events, calls)
    }
}

impl ChannelProbes {
    /// Attaches what is not yet.
    fn attach(&mut self, attached: &mut Attached, wanted: &Wanted<'_>) -> Result {
        for (event, number) in wanted.events() {
            if self.recorded.has(event) {
                continue;
            }
            self.recorded.set(event, true)?;
            let probe = || -> Result<Arc<Probe>> {
                let is_call = matches!(event.source(), EventSource::Syscall { .. });
                let recorder = Recorder {
                    entrance: self.channel.entrance().clone(),
                    channel: (!is_call).then(|| self.channel.clone()),
                    event: event.id(),
                    // The state is of all tasks.
                    tasks: match event.listed() {
                        Some(ListedSource::State(_)) => Arc::new(Tasks::new(), GFP_KERNEL)?,
                        _ => self.tasks.clone(),
                    },
                };
                let contexts = self.contexts.clone();
                let filter = wanted.filter(event).cloned();
                let probe = Probe::new(recorder, number, contexts, filter);
                Ok(Arc::new(probe, GFP_KERNEL)?)
            };
            match event.source() {
                EventSource::Typed {
                    declaration,
                    tracepoint,
                } => {
                    let probe = probe()?;
                    let handler = if probe.looks() {
                        declaration.looking
                    } else {
                        declaration.handlers.select(self.channel.setup())
                    };
                    attached.events.attach(*tracepoint, handler, probe)?;
                }
                EventSource::External(external) => {
                    let place = external.tracepoint.clone();
                    attached.events.attach(place, external.handler, probe()?)?;
                }
                EventSource::Listed(listed) => {
                    let probe = probe()?;
                    self.listed.reserve(1, GFP_KERNEL)?;
                    let list = listed.list(&self.sources);
                    list.attach(probe.clone(), self.sample_frequency)?;
                    self.listed.push((event.clone(), probe), GFP_KERNEL)?;
                }
                EventSource::Syscall {
                    call,
                    direction,
                    tracepoint,
                } => {
                    let is_it = |calls: &&Arc<CallProbes>| {
                        calls.direction() == *direction && calls.are_of(&self.channel)
                    };
                    let known = attached.calls.iter().find(is_it);
                    if known.is_some_and(|calls| calls.has(call)) {
                        // `detach_others` enables it again.
                        continue;
                    }
                    let probe = probe()?;
                    if let Some(calls) = known {
                        calls.set(call, &probe);
                        continue;
                    }
                    let calls = CallProbes::new(*direction)?;
                    calls.set(call, &probe);
                    let handler = syscall::handlers(*direction).select(self.channel.setup());
                    attached.calls.attach(*tracepoint, handler, calls)?;
                }
            }
        }
        Ok(())
    }

    /// Detaches all probes of this channel that are for no event of its, and waits until none of
    /// them runs. The probe of a call is disabled instead while other calls are recorded. May sleep.
    fn detach_others(&mut self, attached: &mut Attached) {
        self.detach_listed();
        let Self {
            channel, recorded, ..
        } = &*self;
        let is_recorded = |probe: &Probe| {
            let event = probe.event_of(channel);
            event.map(|event| recorded.has_id(event))
        };
        for probe in attached.calls.iter().flat_map(|calls| calls.iter()) {
            if let Some(is_recorded) = is_recorded(probe) {
                probe.set_live(is_recorded);
            }
        }
        let Attached { events, calls } = attached;
        tracepoint::detach(&mut [
            &mut events.picked(|probe| is_recorded(probe) == Some(false)),
            &mut calls.picked(|calls| calls.are_of(channel) && !calls.iter().any(Probe::is_live)),
        ]);
    }

    fn detach_listed(&mut self) {
        let Self {
            sources,
            recorded,
            listed,
            ..
        } = self;
        listed.retain(|(event, probe)| {
            let stays = recorded.has(event);
            if let (Some(listed), false) = (event.listed(), stays) {
                listed.list(sources).detach(probe);
            }
            stays
        });
    }
}
