// SPDX-License-Identifier: GPL-2.0

//! The probes of a trace: attaching and detaching them as events are enabled.
//!
//! An event keeps its probe until it is disabled. A change of a filter, or of whose events are recorded,
//! changes what the probe looks at.

use super::settings::ChannelSettings;
use super::{Numbers, Selection};
use crate::channel::Channel;
use crate::context::ContextSet;
use crate::event::Event;
use crate::probe::filter::Filter;
use crate::probe::tasks::Tasks;
use crate::probe::{Probe, Recorder};
use crate::source::listed::Listed;
use crate::source::sampled::Frequency;
use crate::source::syscall::{self, CapturedSyscallProbe, Direction, SyscallProbe};
use crate::source::{SessionSources, Source};
use crate::sys::rcu::Retired;
use crate::sys::tracepoint::{self, Attachments, Tracepoint};
use kernel::prelude::*;
use kernel::sync::Arc;

/// The probes that are attached for one trace.
pub(super) struct Probes {
    channels: KVec<ChannelProbes>,
    attached: Attached,
}

/// What is attached to tracepoints, for all channels.
struct Attached {
    events: Attachments<Probe>,
    /// Entries and exits of system calls; each, if it is attached, for all calls of a channel.
    syscalls: Attachments<SyscallProbe>,
    captured_syscalls: Attachments<CapturedSyscallProbe>,
}

/// What is attached for a channel.
struct ChannelProbes {
    channel: Arc<Channel>,
    tasks: Arc<Tasks>,
    sources: SessionSources,
    sample_frequency: Frequency,
    contexts: Arc<ContextSet>,
    /// The events that have a probe.
    recorded: Selection,
    /// Of these the system calls that are captured.
    captured_syscalls: Selection,
    /// Those of events that keep a list of them.
    listed: KVVec<(Arc<Event>, Arc<Probe>)>,
}

/// What a change has attached, and does not record yet.
struct Change {
    syscalls: KVec<(Arc<SyscallProbe>, syscall::Numbers)>,
    captured_syscalls: KVec<(Arc<CapturedSyscallProbe>, syscall::Numbers)>,
}

/// What a channel shall record.
struct Wanted<'a> {
    settings: &'a ChannelSettings,
    /// All events that shall be recorded have one.
    numbers: &'a Numbers,
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
                syscalls: Attachments::new(),
                captured_syscalls: Attachments::new(),
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
                captured_syscalls: Selection::NONE,
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
        numbers: &Numbers,
    ) -> Result {
        let this = self.channels.get_mut(index).ok_or(ENOENT)?;
        let wanted = Wanted { settings, numbers };
        let recorded = this.recorded.try_clone()?;
        let captured = this.captured_syscalls.try_clone()?;
        let mut change = Change {
            syscalls: KVec::new(),
            captured_syscalls: KVec::new(),
        };
        if let Err(error) = this.attach(&mut self.attached, &wanted, &mut change) {
            this.recorded.keep(&recorded);
            this.captured_syscalls.keep(&captured);
            this.detach_others(&mut self.attached);
            return Err(error);
        }
        // Nothing fails from here on.
        let mut retired = Retired::new();
        for probe in self.attached.events.iter() {
            if let Some(event) = probe.event_of(&this.channel) {
                probe.set_filter(settings.filters.get(event), &mut retired);
            }
        }
        for (event, probe) in &this.listed {
            probe.set_filter(wanted.filter(event), &mut retired);
        }
        for (probe, _) in &change.captured_syscalls {
            for (event, _) in wanted.events() {
                if let Some((_, slot)) = call(event, probe.direction()) {
                    probe.set_filter(slot, wanted.filter(event), &mut retired);
                }
            }
        }
        for (probe, calls) in &change.syscalls {
            probe.select(calls);
        }
        for (probe, calls) in &change.captured_syscalls {
            probe.select(calls);
        }
        this.recorded.keep(&settings.selection);
        this.captured_syscalls.keep(&settings.selection);
        this.detach_others(&mut self.attached);
        Ok(())
    }

    /// Detaches all, and waits until none runs. May sleep.
    pub(super) fn detach(&mut self) {
        for channel in &mut self.channels {
            channel.recorded = Selection::NONE;
            channel.captured_syscalls = Selection::NONE;
            channel.detach_listed();
        }
        let Attached {
            events,
            syscalls,
            captured_syscalls,
        } = &mut self.attached;
        tracepoint::detach(&mut [
            &mut events.picked(|_| true),
            &mut syscalls.picked(|_| true),
            &mut captured_syscalls.picked(|_| true),
        ]);
    }
}

impl ChannelProbes {
    /// Whether the event of a call is captured, if it is recorded.
    fn captures(&self, event: &Event, wanted: &Wanted<'_>) -> bool {
        !self.contexts.is_empty()
            || self.tasks.is_set()
            || wanted.filter(event).is_some()
            || self.captured_syscalls.has(event)
    }

    /// Attaches what is not yet.
    fn attach(
        &mut self,
        attached: &mut Attached,
        wanted: &Wanted<'_>,
        change: &mut Change,
    ) -> Result {
        for (event, number) in wanted.events() {
            if matches!(event.source(), Source::Syscall { .. }) && self.captures(event, wanted) {
                self.captured_syscalls.set(event, true)?;
            }
            if self.recorded.has(event) {
                continue;
            }
            self.recorded.set(event, true)?;
            let probe = || -> Result<Arc<Probe>> {
                let recorder = Recorder {
                    channel: self.channel.clone(),
                    event: event.id(),
                    // The state is of all tasks.
                    tasks: match event.listed() {
                        Some(Listed::State(_)) => Arc::new(Tasks::new(), GFP_KERNEL)?,
                        _ => self.tasks.clone(),
                    },
                };
                let contexts = self.contexts.clone();
                let filter = wanted.filter(event).cloned();
                let probe = Probe::new(recorder, number, contexts, filter);
                Ok(Arc::new(probe, GFP_KERNEL)?)
            };
            match event.source() {
                Source::Typed {
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
                Source::External(external) => {
                    let place = external.tracepoint.clone();
                    attached.events.attach(place, external.handler, probe()?)?;
                }
                Source::Listed(listed) => {
                    let probe = probe()?;
                    self.listed.reserve(1, GFP_KERNEL)?;
                    let list = listed.list(&self.sources);
                    list.attach(probe.clone(), self.sample_frequency)?;
                    self.listed.push((event.clone(), probe), GFP_KERNEL)?;
                }
                Source::Syscall { .. } => {}
            }
        }
        for direction in Direction::ALL {
            self.attach_syscalls(attached, wanted, direction, change)?;
        }
        Ok(())
    }

    fn attach_syscalls(
        &self,
        attached: &mut Attached,
        wanted: &Wanted<'_>,
        direction: Direction,
        change: &mut Change,
    ) -> Result {
        let channel = &self.channel;
        let calls = |captured| {
            let events = wanted.events();
            let events =
                events.filter(move |(event, _)| self.captured_syscalls.has(event) == captured);
            events.filter_map(move |(event, number)| Some((call(event, direction)?, number)))
        };
        let numbers = |captured| {
            syscall::Numbers::new(calls(captured).map(|((_, slot), number)| (slot, number)))
        };

        let is_ours =
            |probe: &&Arc<SyscallProbe>| probe.direction() == direction && probe.is_of(channel);
        let known = attached.syscalls.iter().find(is_ours).cloned();
        let probe = match (known, calls(false).next()) {
            (None, Some(((tracepoint, _), _))) => {
                let probe = SyscallProbe::new(channel, direction)?;
                let handler = syscall::handler(direction, channel.setup());
                attached
                    .syscalls
                    .attach(tracepoint, handler, probe.clone())?;
                Some(probe)
            }
            (known, _) => known,
        };
        if let Some(probe) = probe {
            change.syscalls.push((probe, numbers(false)?), GFP_KERNEL)?;
        }

        let is_ours = |probe: &&Arc<CapturedSyscallProbe>| {
            probe.direction() == direction && probe.is_of(channel)
        };
        let known = attached.captured_syscalls.iter().find(is_ours).cloned();
        let probe = match (known, calls(true).next()) {
            (None, Some(((tracepoint, _), _))) => {
                let probe = CapturedSyscallProbe::new(
                    channel,
                    direction,
                    self.tasks.clone(),
                    self.contexts.clone(),
                )?;
                let handler = syscall::captured_handler(direction);
                attached
                    .captured_syscalls
                    .attach(tracepoint, handler, probe.clone())?;
                Some(probe)
            }
            (known, _) => known,
        };
        if let Some(probe) = probe {
            change
                .captured_syscalls
                .push((probe, numbers(true)?), GFP_KERNEL)?;
        }
        Ok(())
    }

    /// Detaches all probes of this channel that are for no event of its, and waits until none of
    /// them runs. May sleep.
    fn detach_others(&mut self, attached: &mut Attached) {
        self.detach_listed();
        let Self {
            channel, recorded, ..
        } = &*self;
        let Attached {
            events,
            syscalls,
            captured_syscalls,
        } = attached;
        tracepoint::detach(&mut [
            &mut events.picked(|probe| {
                let event = probe.event_of(channel);
                event.is_some_and(|event| !recorded.has_id(event))
            }),
            &mut syscalls.picked(|probe| probe.is_of(channel) && probe.is_unused()),
            &mut captured_syscalls.picked(|probe| probe.is_of(channel) && probe.is_unused()),
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

/// Where the system call fires that `event` is, and its slot; [`None`] if it is no call's event in
/// this direction.
fn call(event: &Event, direction: Direction) -> Option<(Tracepoint, u32)> {
    match event.source() {
        Source::Syscall {
            call,
            direction: its,
            tracepoint,
        } if *its == direction => Some((*tracepoint, call.slot())),
        _ => None,
    }
}
