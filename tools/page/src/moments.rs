// SPDX-License-Identifier: GPL-2.0

//! The important moments of a trace. A page too small for the whole trace has these moments in full detail.

use std::collections::BTreeSet;

/// Number of the longest waits, and of the longest failed calls, to keep.
const LONGEST: usize = 10;

/// Number of the first markers to keep.
const FIRST: usize = 10;

/// A reason to look at a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// This thread waited for a CPU after its wake-up.
    Waited(u32),
    /// This call of this thread failed.
    Failed {
        /// The place of the call's name.
        call: u32,
        /// The place of the thread.
        thread: u32,
    },
    /// `rtrace mark` was called.
    Marked,
    /// Events of this CPU are missing.
    Lost(u32),
}

/// A time with its reason, in clock ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Begin of the moment.
    pub from: u64,
    /// End of the moment.
    pub to: u64,
    /// The reason.
    pub why: Why,
}

/// The moments seen so far.
#[derive(Debug, Default)]
pub struct Moments {
    waits: Longest,
    failed: Longest,
    /// Times of the first markers.
    markers: Vec<u64>,
}

/// The longest of many intervals: length, begin and reason.
#[derive(Debug, Default)]
struct Longest(BTreeSet<(u64, u64, Why)>);

impl Moments {
    /// Takes a thread's wait for a CPU.
    pub fn waited(&mut self, thread: u32, from: u64, to: u64) {
        self.waits.add(from, to, Why::Waited(thread));
    }

    /// Takes a failed call.
    pub fn failed(&mut self, call: u32, thread: u32, from: u64, to: u64) {
        self.failed.add(from, to, Why::Failed { call, thread });
    }

    /// Takes a marker.
    pub fn marked(&mut self, time: u64) {
        if self.markers.len() < FIRST {
            self.markers.push(time);
        }
    }

    /// Returns the moments, the most important first.
    pub fn all(&self) -> impl Iterator<Item = Moment> + '_ {
        let marker = |time: &u64| Moment {
            from: *time,
            to: *time,
            why: Why::Marked,
        };
        let markers = self.markers.iter().map(marker);
        markers.chain(self.waits.all()).chain(self.failed.all())
    }
}

impl Longest {
    fn add(&mut self, from: u64, to: u64, why: Why) {
        let length = to.saturating_sub(from);
        let is_full = self.0.len() >= LONGEST;
        if is_full && self.0.first().is_some_and(|(least, ..)| *least >= length) {
            return;
        }
        self.0.insert((length, from, why));
        if self.0.len() > LONGEST {
            self.0.pop_first();
        }
    }

    fn all(&self) -> impl Iterator<Item = Moment> + '_ {
        self.0.iter().rev().map(|(length, from, why)| Moment {
            from: *from,
            to: from + length,
            why: why.clone(),
        })
    }
}
