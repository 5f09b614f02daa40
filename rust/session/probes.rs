// SPDX-License-Identifier: GPL-2.0

//! The probes of a trace: attaching and detaching them as events are enabled.

use super::{Numbers, Selection};
use crate::channel::Channel;
use crate::event::syscall::{self, Direction, SyscallProbe};
use crate::event::{Event, Source};
use crate::probe::Probe;
use crate::sys::tracepoint::{self, Attachments, Tracepoint};
use kernel::prelude::*;
use kernel::sync::Arc;

/// The probes that are attached for one trace.
pub(super) struct Probes {
    channels: KVec<ChannelProbes>,
    typed: Attachments<Probe>,
    /// Entries and exits of system calls; each, if it is attached, for all calls of a channel.
    syscalls: Attachments<SyscallProbe>,
}

/// What is attached for a channel, but for system calls.
struct ChannelProbes {
    channel: Arc<Channel>,
    recorded: Selection,
    /// Those of other modules among them.
    provided: KVec<Arc<Event>>,
}

impl Probes {
    /// None yet; what they will record goes to `channels`.
    pub(super) fn new<'a>(channels: impl Iterator<Item = &'a Arc<Channel>>) -> Result<Self> {
        let mut probes = Self {
            channels: KVec::new(),
            typed: Attachments::new(),
            syscalls: Attachments::new(),
        };
        for channel in channels {
            let channel = ChannelProbes {
                channel: channel.clone(),
                recorded: Selection::NONE,
                provided: KVec::new(),
            };
            probes.channels.push(channel, GFP_KERNEL)?;
        }
        Ok(probes)
    }

    /// Has the channel at `index` record exactly the events in `selection`, all of which have
    /// `numbers`: attaches their probes, and detaches its others. On failure it records what it
    /// did before. May sleep.
    pub(super) fn select(
        &mut self,
        index: usize,
        selection: &Selection,
        numbers: &Numbers,
    ) -> Result {
        let this = self.channels.get_mut(index).ok_or(ENOENT)?;
        let channel = this.channel.clone();
        let before = this.recorded.try_clone()?;
        let attached = this
            .attach(&mut self.typed, selection, numbers)
            .and_then(|()| self.select_syscalls(&channel, selection, numbers));
        self.detach_all_but(index, if attached.is_ok() { selection } else { &before });
        attached
    }

    fn select_syscalls(
        &mut self,
        channel: &Arc<Channel>,
        selection: &Selection,
        numbers: &Numbers,
    ) -> Result {
        let mut chosen = KVec::with_capacity(Direction::ALL.len(), GFP_KERNEL)?;
        for direction in Direction::ALL {
            let selected = || numbers.iter().filter(|(event, _)| selection.has(event));
            let calls = || selected().filter_map(|(event, number)| call(event, direction, number));
            let is_ours =
                |probe: &&Arc<SyscallProbe>| probe.direction() == direction && probe.is_of(channel);
            let attached = self.syscalls.iter().find(is_ours).cloned();
            let probe = match (attached, calls().next()) {
                (Some(probe), _) => probe,
                (None, Some((tracepoint, ..))) => {
                    let probe = SyscallProbe::new(channel.clone(), direction)?;
                    let handler = syscall::handler(direction, channel.setup());
                    self.syscalls.attach(tracepoint, handler, probe.clone())?;
                    probe
                }
                (None, None) => continue,
            };
            let calls = syscall::Numbers::new(calls().map(|(_, slot, number)| (slot, number)))?;
            chosen.push((probe, calls), GFP_KERNEL)?;
        }
        // Nothing fails from here on.
        for (probe, calls) in &chosen {
            probe.select(calls);
        }
        Ok(())
    }

    /// Detaches all, and waits until none runs. May sleep.
    pub(super) fn detach(&mut self) {
        for channel in &mut self.channels {
            channel.detach_provided(&Selection::NONE);
            channel.recorded = Selection::NONE;
        }
        tracepoint::detach(&mut [
            &mut self.typed.picked(|_| true),
            &mut self.syscalls.picked(|_| true),
        ]);
    }

    /// Detaches the probes of a channel that record nothing of `selection`, and waits until none of
    /// them runs. May sleep.
    fn detach_all_but(&mut self, index: usize, selection: &Selection) {
        let Some(this) = self.channels.get_mut(index) else {
            return;
        };
        this.detach_provided(selection);
        this.recorded.keep(selection);
        let channel = &*this.channel;
        tracepoint::detach(&mut [
            &mut self
                .typed
                .picked(|probe| probe.is_of(channel) && !selection.has_id(probe.event())),
            &mut self
                .syscalls
                .picked(|probe| probe.is_of(channel) && probe.is_unused()),
        ]);
    }
}

/// Where the system call fires that `event` is, with its slot and its number; [`None`] if it is no
/// call's event in this direction.
fn call(event: &Event, direction: Direction, number: u32) -> Option<(Tracepoint, u32, u32)> {
    match event.source() {
        Source::Syscall {
            call,
            direction: its,
            tracepoint,
        } if *its == direction => Some((*tracepoint, call.slot(), number)),
        _ => None,
    }
}

impl ChannelProbes {
    /// Attaches what is not yet, but for system calls.
    fn attach(
        &mut self,
        typed: &mut Attachments<Probe>,
        selection: &Selection,
        numbers: &Numbers,
    ) -> Result {
        let channel = &self.channel;
        for (event, number) in numbers.iter().filter(|(event, _)| selection.has(event)) {
            if self.recorded.has(event) {
                continue;
            }
            let probe = || Probe::new(channel.clone(), event.id(), number);
            match event.source() {
                Source::Typed {
                    declaration,
                    tracepoint,
                } => {
                    self.recorded.set(event, true)?;
                    let handler = declaration.handlers.select(channel.setup());
                    typed.attach(*tracepoint, handler, Arc::new(probe(), GFP_KERNEL)?)?;
                }
                Source::Provided(provided) => {
                    self.recorded.set(event, true)?;
                    self.provided.reserve(1, GFP_KERNEL)?;
                    provided.attach(probe())?;
                    self.provided.push(event.clone(), GFP_KERNEL)?;
                }
                Source::Syscall { .. } => {}
            }
        }
        Ok(())
    }

    fn detach_provided(&mut self, selection: &Selection) {
        let channel = &*self.channel;
        self.provided.retain(|event| {
            let stays = selection.has(event);
            if let (Source::Provided(provided), false) = (event.source(), stays) {
                provided.detach(channel);
            }
            stays
        });
    }
}
