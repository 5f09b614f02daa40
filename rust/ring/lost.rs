// SPDX-License-Identifier: GPL-2.0

//! Records that were lost, by reason.

use super::platform::{Local, Platform};

/// Reason for which a record was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Discard mode: no sub-buffer is free (equation 1).
    Full,
    /// A context that this one interrupted has not committed its record, although a whole buffer was
    /// reserved after that record (equation 3).
    Wrapped,
    /// The record does not fit into a sub-buffer.
    TooLarge,
    /// The probe fired itself while it recorded in the same context.
    Nested,
    /// Another CPU was acting in place of the buffer's CPU.
    Busy,
}

impl Lost {
    /// All reasons, in the order of the counters.
    pub const ALL: [Self; 5] = [
        Self::Full,
        Self::Wrapped,
        Self::TooLarge,
        Self::Nested,
        Self::Busy,
    ];
}

/// Counters of lost records. Written on the buffer's CPU, read anywhere.
pub struct LostCounters<P: Platform> {
    full: P::Local,
    wrapped: P::Local,
    too_large: P::Local,
    nested: P::Local,
    /// Number of records committed, then overwritten by the writer.
    overwritten: P::Local,
    busy: P::Local,
}

impl<P: Platform> LostCounters<P> {
    pub(super) fn new() -> Self {
        Self {
            full: P::Local::new(0),
            wrapped: P::Local::new(0),
            too_large: P::Local::new(0),
            nested: P::Local::new(0),
            overwritten: P::Local::new(0),
            busy: P::Local::new(0),
        }
    }

    #[inline(always)]
    fn counter(&self, reason: Lost) -> &P::Local {
        match reason {
            Lost::Full => &self.full,
            Lost::Wrapped => &self.wrapped,
            Lost::TooLarge => &self.too_large,
            Lost::Nested => &self.nested,
            Lost::Busy => &self.busy,
        }
    }

    /// Counts a refused record.
    #[inline(always)]
    pub fn count(&self, reason: Lost) {
        self.counter(reason).increment();
    }

    /// Counts some records that were refused before they reached the buffer.
    pub fn count_many(&self, reason: Lost, records: u64) {
        self.counter(reason).add(records);
    }

    /// Records refused for `reason`.
    pub fn get(&self, reason: Lost) -> u64 {
        self.counter(reason).load()
    }

    /// Records refused for any reason: CTF's `events_discarded`.
    pub fn discarded(&self) -> u64 {
        Lost::ALL
            .iter()
            .fold(0, |sum, &reason| sum.wrapping_add(self.get(reason)))
    }

    pub(super) fn count_overwritten(&self, records: u64) {
        self.overwritten.add(records);
    }

    pub(super) fn overwritten(&self) -> u64 {
        self.overwritten.load()
    }
}
