// SPDX-License-Identifier: GPL-2.0

//! Events of programs for channels whose records are [given](crate::channel::given): what such a record contains.
//!
//! The event fired earlier, in a thread of which only some contexts are known; or it fires in the current thread, and
//! its record waits.

use super::captured::{Bytes, Look, WithContexts, LONGEST};
use super::Probe;
use crate::arch::preempt::NoPreempt;
use crate::context::{Moment, ThreadContexts};
use crate::record::memory::{tail_alone, Capture, Captured};

/// Maximum size of contexts and fields.
pub(crate) const ROOM: usize = 2560;

impl Probe {
    /// Whether only the thread that fires the event can say what to record: by the contexts of the channel, by those
    /// that the filter compares, or by a set of cgroups.
    pub(crate) fn needs_thread(&self) -> bool {
        let guard = NoPreempt::new();
        let filter = self.filter.get(&guard);
        !self.contexts.is_of_thread()
            || self.tasks.has_cgroups()
            || filter.is_some_and(|filter| !filter.is_of_thread())
    }

    /// Writes the record of an event that `thread` fired earlier, and returns its size. [`None`]: the event is not
    /// wanted. The probe must not [need the thread](Self::needs_thread).
    pub(crate) fn record_of(
        &self,
        thread: &ThreadContexts,
        fields: &[u8],
        room: &mut [u8; ROOM],
    ) -> Option<usize> {
        let guard = NoPreempt::new();
        let filter = self.filter.get(&guard);
        if self.look.load() & Look::NOTHING != 0
            || !self.tasks.wants(thread.tid, &guard)
            || filter.is_some_and(|filter| !filter.wants_of(fields, thread))
        {
            return None;
        }
        let at = self.contexts.write_of(thread, room)?;
        let end = at + fields.len();
        room.get_mut(at..end)?.copy_from_slice(fields);
        Some(end)
    }

    /// Writes the record of an event that the current thread fires now. [`None`]: the event is not wanted, or too large.
    pub(crate) fn record_now<'r>(
        &self,
        fields: &[u8],
        room: &'r mut Capture<ROOM>,
    ) -> Option<Captured<'r>> {
        if !self.wants_current_task() {
            return None;
        }
        let guard = NoPreempt::new();
        let now = Moment::new(&guard, 1);
        let mut captured = Capture::<LONGEST>::new();
        let fields = Bytes(fields);
        let (len, write) = tail_alone(&fields);
        let fields = captured.fill(len, write)?;
        if !self.wants_record(fields, now) {
            return None;
        }
        let record = WithContexts {
            contexts: &self.contexts,
            now,
            fields: &Bytes(fields.fields()),
        };
        record.capture(room)
    }
}
