// SPDX-License-Identifier: GPL-2.0

//! The probes of a trace: attaching and detaching them as events are enabled.

use super::{Numbers, Selection, Tracepoints};
use crate::channel::Channel;
use crate::event::syscall::{self, Direction, SyscallProbe};
use crate::event::{self, Kind};
use crate::probe::Probe;
use crate::sys::tracepoint::{self, Attachments};
use kernel::prelude::*;
use kernel::sync::Arc;

/// The probes that are attached for one trace.
pub(super) struct Probes {
    channel: Arc<Channel>,
    attached: Attachments<Probe>,
    /// Entries and exits of system calls; each, if it is attached, for all calls.
    syscalls: Attachments<SyscallProbe>,
    /// Events of other modules that have a probe of this trace.
    provided: Selection,
}

impl Probes {
    /// None yet; what they will record goes to `channel`.
    pub(super) fn new(channel: Arc<Channel>) -> Result<Self> {
        Ok(Self {
            channel,
            attached: Attachments::new(),
            syscalls: Attachments::new(),
            provided: Selection::new(event::count())?,
        })
    }

    /// Attaches the probes of the events in `selection`, and detaches all others. On failure
    /// those that were attached before stay. May sleep.
    pub(super) fn select(
        &mut self,
        tracepoints: &Tracepoints,
        selection: &Selection,
        numbers: &Numbers,
    ) -> Result {
        let channel = self.channel.clone();
        let setup = channel.setup();
        for event in event::all().filter(|event| selection.has(event.id())) {
            let id = event.id();
            let Some(number) = numbers.get(id) else {
                continue;
            };
            let probe = || Arc::new(Probe::new(channel.clone(), id, number), GFP_KERNEL);
            match (event.kind(), tracepoints.get(id)) {
                (Kind::Declared(declaration), Some(tracepoint)) => {
                    if !self.attached.iter().any(|probe| probe.event() == id) {
                        self.attached.attach(
                            tracepoint,
                            declaration.handlers.select(setup),
                            probe()?,
                        )?;
                    }
                }
                (Kind::Provided(provided), _) => {
                    if !self.provided.has(id) {
                        provided.attach(Some(probe()?));
                        self.provided.set(id, true);
                    }
                }
                _ => {}
            }
        }
        for direction in [Direction::Entry, Direction::Exit] {
            self.select_syscalls(tracepoints, direction, |id| {
                numbers.get(id).filter(|_| selection.has(id))
            })?;
        }
        self.detach_all_but(selection);
        Ok(())
    }

    fn select_syscalls(
        &mut self,
        tracepoints: &Tracepoints,
        direction: Direction,
        number: impl Fn(u32) -> Option<u32>,
    ) -> Result {
        let number = |slot| number(direction.id(slot));
        let Some(first) = (0..syscall::SLOTS).find(|&slot| number(slot).is_some()) else {
            return Ok(());
        };
        let mut attached = self.syscalls.iter();
        if let Some(probe) = attached.find(|probe| probe.direction() == direction) {
            probe.select(number);
        } else if let Some(tracepoint) = tracepoints.get(direction.id(first)) {
            let probe = SyscallProbe::new(self.channel.clone(), direction)?;
            probe.select(number);
            let handler = syscall::handler(direction, self.channel.setup());
            drop(attached);
            self.syscalls.attach(tracepoint, handler, probe)?;
        }
        Ok(())
    }

    /// Detaches all, and waits until none runs. May sleep.
    pub(super) fn detach(&mut self) {
        self.detach_all_but(&Selection::NONE);
    }

    /// Detaches the probes of events that are not in `selection`, and waits until none of them
    /// runs. May sleep.
    fn detach_all_but(&mut self, selection: &Selection) {
        for event in event::all() {
            if let Kind::Provided(provided) = event.kind() {
                if self.provided.has(event.id()) && !selection.has(event.id()) {
                    provided.attach(None);
                    self.provided.set(event.id(), false);
                }
            }
        }
        let is_unused = |probe: &SyscallProbe| {
            (0..syscall::SLOTS).all(|slot| !selection.has(probe.direction().id(slot)))
        };
        tracepoint::detach(&mut [
            &mut self.attached.picked(|probe| !selection.has(probe.event())),
            &mut self.syscalls.picked(is_unused),
        ]);
    }
}
