// SPDX-License-Identifier: GPL-2.0

//! Markers: texts that users write into a trace, each with the time when it was written.
//!
//! A marker is an event of every trace, but none that is chosen: no selection, filter or set of
//! tasks has a say in it. The metadata describes it once there is one.

use super::captured::{Bytes, WithContexts};
use crate::abi::header::MARKER_ID;
use crate::abi::schema::{Field, FieldType};
use crate::arch::preempt::NoPreempt;
use crate::channel::Channel;
use crate::context::ContextSet;
use crate::probe::Destination;
use crate::record::header::Label;
use crate::record::memory::{Capture, NulTerminated};
use crate::sys::args::Task;
use crate::sys::cpu;
use kernel::sync::Arc;

/// The longest text, in bytes.
pub(crate) const LONGEST: usize = 1023;

/// The event's name in a trace.
pub(crate) const NAME: &str = "rtrace_marker";

/// The event's fields.
pub(crate) const FIELDS: [Field<'static>; 1] = [Field {
    name: "msg",
    ty: FieldType::String,
}];

/// The longest record, contexts included, that goes into the stream of another CPU.
const ROOM: usize = 2560;

/// What records markers in a trace.
pub(crate) struct Marker {
    channel: Arc<Channel>,
    label: Label,
    contexts: Arc<ContextSet>,
}

impl Marker {
    /// Has markers recorded into `channel`, whose events have these contexts.
    pub(crate) fn new(channel: &Arc<Channel>, contexts: &Arc<ContextSet>) -> Self {
        Self {
            label: Label::in_layout(MARKER_ID, channel.setup().layout),
            channel: channel.clone(),
            contexts: contexts.clone(),
        }
    }

    /// Records `text`, which has no NUL, on this CPU. The trace's metadata describe the event. Any
    /// context, NMI included.
    #[inline(never)]
    pub(crate) fn record(&self, text: &[u8], guard: &NoPreempt) {
        WithContexts {
            contexts: &self.contexts,
            guard,
            fields: &NulTerminated(text),
        }
        .record(self.destination());
    }

    /// The same, but in the stream of another CPU if this one is not recorded. Returns whether it was
    /// recorded, or lost and counted; if not, the trace is over. Context: process, interrupts on.
    pub(crate) fn record_anywhere(&self, text: &[u8], guard: &NoPreempt) -> bool {
        if self.channel.setup().cpus.has(Task::current().cpu() as u32) {
            self.record(text, guard);
            // `Channel::close` says no here before it closes the gates, whose closing is a release and
            // their check an acquire: so it was not closed.
            return self.channel.is_active();
        }
        self.record_elsewhere(text, guard)
    }

    /// The contexts are those of here.
    #[inline(never)]
    fn record_elsewhere(&self, text: &[u8], guard: &NoPreempt) -> bool {
        let record = WithContexts {
            contexts: &self.contexts,
            guard,
            fields: &NulTerminated(text),
        };
        let mut room = Capture::<ROOM>::new();
        let Some(record) = record.capture(&mut room) else {
            return false;
        };
        let cpus = &self.channel.setup().cpus;
        let mut recorded = cpu::possible().filter(|cpu| cpus.has(*cpu));
        let found = recorded.any(|cpu| {
            let there = cpu::run_on(cpu, &(self, record), |(this, record)| {
                this.destination().record(&Bytes(record.fields()));
            });
            // Else it is offline.
            there.is_ok()
        });
        found && self.channel.is_active()
    }

    fn destination(&self) -> Destination<'_> {
        Destination {
            buffers: self.channel.buffers(),
            channel: &self.channel,
            label: self.label,
        }
    }
}
