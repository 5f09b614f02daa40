// SPDX-License-Identifier: GPL-2.0

//! Built-in events, which the tracer itself records at the request of a user or a trigger.
//!
//! Each trace has them, but they cannot be selected: no selection, filter or set of tasks applies to them. The
//! metadata describes each as soon as it can be recorded.

pub(crate) mod marker;
mod stack;

use crate::abi::header::{MARKER_ID, STACK_ID};
use crate::abi::schema::Field;
use crate::arch::preempt::NoPreempt;
use crate::channel::Channel;
use crate::context::ContextSet;
use crate::probe::Destination;
use crate::record::header::RecordLabel;
use crate::sys::rcu::RcuArc;
use kernel::sync::Arc;

/// A built-in event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    /// A text.
    Marker,
    /// The kernel's call stack.
    Stack,
}

impl Builtin {
    /// All built-in events.
    pub(crate) const ALL: [Self; 2] = [Self::Marker, Self::Stack];

    /// The event's number in all streams.
    pub(crate) const fn id(self) -> u32 {
        match self {
            Self::Marker => MARKER_ID,
            Self::Stack => STACK_ID,
        }
    }

    /// The event's name in a trace.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Marker => "rtrace_marker",
            Self::Stack => "rtrace_stack",
        }
    }

    /// The event's fields, in the order of the record.
    pub(crate) const fn fields(self) -> &'static [Field<'static>] {
        match self {
            Self::Marker => &marker::FIELDS,
            Self::Stack => &stack::FIELDS,
        }
    }
}

/// Records built-in events in a trace.
pub(crate) struct BuiltinProbe {
    channel: Arc<Channel>,
    contexts: Arc<ContextSet>,
}

impl BuiltinProbe {
    /// Records into `channel`, whose events have these contexts.
    pub(crate) fn new(channel: &Arc<Channel>, contexts: &Arc<ContextSet>) -> Self {
        Self {
            channel: channel.clone(),
            contexts: contexts.clone(),
        }
    }

    /// Whether an event on this CPU is now recorded, or lost and counted. Any context, NMI included.
    pub(crate) fn is_recording_here(&self, guard: &NoPreempt) -> bool {
        self.channel.is_active() && self.records_this_cpu(guard)
    }

    fn records_this_cpu(&self, guard: &NoPreempt) -> bool {
        self.channel.records_this_cpu(guard)
    }

    fn destination(&self, builtin: Builtin) -> Destination<'_> {
        Destination {
            buffers: self.channel.entrance().ways(),
            entrance: self.channel.entrance(),
            label: RecordLabel::in_layout(builtin.id(), self.channel.setup().layout),
        }
    }
}

/// The probes of the built-in events of a session. A place is empty while no trace is recorded, and until the
/// metadata of the trace describes the event.
pub(crate) struct BuiltinProbes {
    marker: RcuArc<BuiltinProbe>,
    stack: RcuArc<BuiltinProbe>,
}

impl BuiltinProbes {
    /// Empty places.
    pub(crate) const fn new() -> Self {
        Self {
            marker: RcuArc::new(),
            stack: RcuArc::new(),
        }
    }

    /// The place of the probe of `builtin`.
    pub(crate) fn of(&self, builtin: Builtin) -> &RcuArc<BuiltinProbe> {
        match builtin {
            Builtin::Marker => &self.marker,
            Builtin::Stack => &self.stack,
        }
    }
}
