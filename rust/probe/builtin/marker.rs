// SPDX-License-Identifier: GPL-2.0

//! Markers: texts that users and triggers write into a trace, each with its time.

use super::{Builtin, BuiltinProbe};
use crate::abi::schema::{Field, FieldType};
use crate::arch::preempt::NoPreempt;
use crate::context::Moment;
use crate::probe::captured::WithContexts;
use crate::record::memory::NulTerminated;

/// The event's fields.
pub(crate) const FIELDS: [Field<'static>; 1] = [Field {
    name: "msg",
    ty: FieldType::String,
}];

impl BuiltinProbe {
    /// Records `text`, which has no NUL, on this CPU. The trace's metadata must describe the event. Any
    /// context, NMI included.
    #[inline(never)]
    pub(crate) fn record_marker(&self, text: &[u8], now: Moment<'_>) {
        WithContexts {
            contexts: &self.contexts,
            now,
            fields: &NulTerminated(text),
        }
        .record(self.destination(Builtin::Marker));
    }

    /// As [`record_marker`](Self::record_marker), in the stream of another CPU if this one is not recorded.
    /// Returns whether the text was recorded, or lost and counted; if not, the trace is over. Context: process,
    /// interrupts on.
    pub(crate) fn record_marker_anywhere(&self, text: &[u8], guard: &NoPreempt) -> bool {
        if self.records_this_cpu(guard) {
            self.record_marker(text, Moment::new(guard, 1));
            // `Channel::close` clears this before it closes the gates. Their closing is a release, and their
            // check an acquire. So the gate was not closed.
            return self.channel.is_active();
        }
        let record = WithContexts {
            contexts: &self.contexts,
            now: Moment::new(guard, 1),
            fields: &NulTerminated(text),
        };
        record.record_elsewhere(&self.destination(Builtin::Marker)) && self.channel.is_active()
    }
}
