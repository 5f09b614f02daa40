// SPDX-License-Identifier: GPL-2.0

//! The probes of a trace: attaching and detaching them as events are enabled.

use super::{Selection, Tracepoints};
use crate::channel::Channel;
use crate::event::syscall::{self, Direction, SyscallProbe};
use crate::event::{self, Kind};
use crate::probe::Probe;
use crate::sys::tracepoint::Attachments;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The probes that are attached for one trace.
pub(super) struct Probes {
    channel: Arc<Channel>,
    attached: Attachments<Probe>,
    /// Entries and exits of system calls; each, if it is attached, for all calls.
    syscalls: Attachments<SyscallProbe>,
}

impl Probes {
    /// None yet; what they will record goes to `channel`.
    pub(super) fn new(channel: Arc<Channel>) -> Self {
        Self {
            channel,
            attached: Attachments::new(),
            syscalls: Attachments::new(),
        }
    }

    /// Attaches the probes of the events in `selection`, and detaches all others. On failure
    /// those that were attached before stay. May sleep.
    pub(super) fn select(&mut self, tracepoints: &Tracepoints, selection: &Selection) -> Result {
        let layout = self.channel.setup().layout;
        for event in event::all().filter(|event| selection.has(event.id())) {
            let Kind::Declared(declaration) = event.kind() else {
                continue;
            };
            let (id, Some(tracepoint)) = (event.id(), tracepoints.get(event.id())) else {
                continue;
            };
            if !self.attached.iter().any(|probe| probe.id() == id) {
                let probe = Arc::new(Probe::new(self.channel.clone(), id), GFP_KERNEL)?;
                self.attached
                    .attach(tracepoint, declaration.handler(layout), probe)?;
            }
        }
        self.attached.detach(|probe| !selection.has(probe.id()));
        self.select_syscalls(tracepoints, selection, Direction::Entry)?;
        self.select_syscalls(tracepoints, selection, Direction::Exit)
    }

    fn select_syscalls(
        &mut self,
        tracepoints: &Tracepoints,
        selection: &Selection,
        direction: Direction,
    ) -> Result {
        let wanted = |slot| selection.has(direction.id(slot));
        let Some(first) = (0..syscall::SLOTS).find(|&slot| wanted(slot)) else {
            self.syscalls.detach(|probe| probe.direction() == direction);
            return Ok(());
        };
        let mut attached = self.syscalls.iter();
        if let Some(probe) = attached.find(|probe| probe.direction() == direction) {
            probe.select(wanted);
        } else if let Some(tracepoint) = tracepoints.get(direction.id(first)) {
            let probe = SyscallProbe::new(self.channel.clone(), direction);
            probe.select(wanted);
            let handler = syscall::handler(direction, self.channel.setup().layout);
            let probe = Arc::new(probe, GFP_KERNEL)?;
            drop(attached);
            self.syscalls.attach(tracepoint, handler, probe)?;
        }
        Ok(())
    }

    /// Detaches all, and waits until none runs. May sleep.
    pub(super) fn detach(&mut self) {
        self.attached.detach(|_| true);
        self.syscalls.detach(|_| true);
    }
}
