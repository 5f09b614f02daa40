// SPDX-License-Identifier: GPL-2.0

//! Markers: texts that users write into a trace, each with the time when it was written, and those
//! of triggers.

use super::{Builtin, BuiltinProbe};
use crate::abi::schema::{Field, FieldType};
use crate::arch::preempt::NoPreempt;
use crate::event::captured::{Bytes, WithContexts};
use crate::record::memory::{Capture, NulTerminated};
use crate::sys::cpu;

/// The event's fields.
pub(super) const FIELDS: [Field<'static>; 1] = [Field {
    name: "msg",
    ty: FieldType::String,
}];

/// The longest record, contexts included, that goes into the stream of another CPU.
const ROOM: usize = 2560;

impl BuiltinProbe {
    /// Records `text`, which has no NUL, on this CPU. The trace's metadata describe the event. Any
    /// context, NMI included.
    #[inline(never)]
    pub(crate) fn record_marker(&self, text: &[u8], guard: &NoPreempt) {
        WithContexts {
            contexts: &self.contexts,
            guard,
            fields: &NulTerminated(text),
        }
        .record(self.destination(Builtin::Marker));
    }

    /// The same, but in the stream of another CPU if this one is not recorded. Returns whether it was
    /// recorded, or lost and counted; if not, the trace is over. Context: process, interrupts on.
    pub(crate) fn record_marker_anywhere(&self, text: &[u8], guard: &NoPreempt) -> bool {
        if self.records_this_cpu(guard) {
            self.record_marker(text, guard);
            // `Channel::close` says no here before it closes the gates, whose closing is a release and
            // their check an acquire: so it was not closed.
            return self.channel.is_active();
        }
        self.record_marker_elsewhere(text, guard)
    }

    /// The contexts are those of here.
    #[inline(never)]
    fn record_marker_elsewhere(&self, text: &[u8], guard: &NoPreempt) -> bool {
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
                this.destination(Builtin::Marker)
                    .record(&Bytes(record.fields()));
            });
            // Else it is offline.
            there.is_ok()
        });
        found && self.channel.is_active()
    }
}
