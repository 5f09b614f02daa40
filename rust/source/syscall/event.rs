// SPDX-License-Identifier: GPL-2.0

//! The events of system calls as sources.

use super::describe::Call;
use super::probe::{data_handlers, handlers, updating, CallProbes};
use super::{calls, Direction};
use crate::abi::schema::Field;
use crate::source::attached::AttachedProbes;
use crate::source::description::FullName;
use crate::source::event_source::{EventSource, FoundSources};
use crate::source::probe_list::NewProbe;
use crate::sys::tracepoint::Tracepoint;
use kernel::error::Result;
use kernel::sync::Arc;

/// The events' subsystem.
const SUBSYSTEM: &str = "syscalls";
/// The subsystem of the events with the bytes that calls move.
const DATA: &str = "syscall_data";

/// The entry or the exit of a system call.
struct CallEvent {
    call: &'static Call,
    direction: Direction,
    /// Whether the event has the bytes that the call moves in this direction.
    is_data: bool,
    /// The tracepoint of all system calls.
    tracepoint: Tracepoint,
}

/// Finds the events of all system calls.
pub(in crate::source) fn find(sources: &mut FoundSources) -> Result {
    for direction in Direction::ALL {
        let Some(tracepoint) = sources.tracepoint(direction.tracepoint()) else {
            continue;
        };
        // The bytes come before the end of their call in a trace, so their events stand first.
        for is_data in [true, false] {
            let calls = calls().filter(|call| !is_data || call.data(direction).is_some());
            for call in calls {
                sources.add(CallEvent {
                    call,
                    direction,
                    is_data,
                    tracepoint,
                })?;
            }
        }
    }
    Ok(())
}

impl EventSource for CallEvent {
    fn full_name(&self) -> FullName<'_> {
        match self.is_data {
            true => (DATA, self.call.data_name),
            false => (SUBSYSTEM, self.call.name(self.direction)),
        }
    }

    fn field(&self, place: usize) -> Option<Field<'_>> {
        match self.is_data {
            true => Call::data_field(place),
            false => self.call.fields(self.direction).nth(place),
        }
    }

    fn attach(
        &self,
        NewProbe { probe, channel, .. }: NewProbe<'_>,
        to: &mut AttachedProbes,
    ) -> Result {
        let &Self {
            call,
            direction,
            is_data,
            tracepoint,
        } = self;
        let shares =
            |calls: &&Arc<CallProbes>| calls.are(direction, is_data) && calls.share_channel(&probe);
        if let Some(calls) = to.calls.iter().find(shares) {
            // A call that was recorded before still has a probe, which `keep` enables again.
            if !calls.has(call) {
                calls.set(call, &probe);
            }
            return Ok(());
        }
        let calls = CallProbes::new(direction, is_data)?;
        calls.set(call, &probe);
        let handlers = match is_data {
            true => data_handlers(direction),
            false => handlers(direction),
        };
        let handler = match channel {
            Some(channel) => handlers.select(channel.setup()),
            None if probe.has_map() && !is_data => updating(direction),
            // The format does not matter: the probe of a trigger records nothing.
            None => handlers.compact_tsc,
        };
        to.calls.attach(tracepoint, handler, calls, probe.rank())
    }

    fn aliases(&self) -> [Option<FullName<'_>>; 2] {
        if self.is_data {
            return [None, None];
        }
        let kernel_name = self.call.kernel_name(self.direction);
        [
            kernel_name.map(|name| (SUBSYSTEM, name)),
            Some(("raw_syscalls", self.direction.tracepoint())),
        ]
    }

    fn is_default(&self) -> bool {
        !self.is_data
    }
}
