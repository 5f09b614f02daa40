// SPDX-License-Identifier: GPL-2.0

//! The events of system calls as sources.

use super::describe::Call;
use super::probe::{handlers, updating, CallProbes};
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

/// The entry or the exit of a system call.
struct CallEvent {
    call: &'static Call,
    direction: Direction,
    /// The tracepoint of all system calls.
    tracepoint: Tracepoint,
}

/// Finds the events of all system calls.
pub(in crate::source) fn find(sources: &mut FoundSources) -> Result {
    for direction in Direction::ALL {
        let Some(tracepoint) = sources.tracepoint(direction.tracepoint()) else {
            continue;
        };
        for call in calls() {
            sources.add(CallEvent {
                call,
                direction,
                tracepoint,
            })?;
        }
    }
    Ok(())
}

impl EventSource for CallEvent {
    fn full_name(&self) -> FullName<'_> {
        (SUBSYSTEM, self.call.name(self.direction))
    }

    fn field(&self, place: usize) -> Option<Field<'_>> {
        self.call.fields(self.direction).nth(place)
    }

    fn attach(
        &self,
        NewProbe { probe, channel, .. }: NewProbe<'_>,
        to: &mut AttachedProbes,
    ) -> Result {
        let &Self {
            call,
            direction,
            tracepoint,
        } = self;
        let shares = |calls: &&Arc<CallProbes>| {
            calls.direction() == direction && calls.share_channel(&probe)
        };
        if let Some(calls) = to.calls.iter().find(shares) {
            // A call that was recorded before still has a probe, which `keep` enables again.
            if !calls.has(call) {
                calls.set(call, &probe);
            }
            return Ok(());
        }
        let calls = CallProbes::new(direction)?;
        calls.set(call, &probe);
        let handlers = handlers(direction);
        let handler = match channel {
            Some(channel) => handlers.select(channel.setup()),
            None if probe.has_map() => updating(direction),
            // The format does not matter: the probe of a trigger records nothing.
            None => handlers.compact_tsc,
        };
        to.calls.attach(tracepoint, handler, calls, probe.rank())
    }

    fn aliases(&self) -> [Option<FullName<'_>>; 2] {
        let kernel_name = self.call.kernel_name(self.direction);
        [
            kernel_name.map(|name| (SUBSYSTEM, name)),
            Some(("raw_syscalls", self.direction.tracepoint())),
        ]
    }

    fn is_default(&self) -> bool {
        true
    }
}
