// SPDX-License-Identifier: GPL-2.0

//! Marks in the active traces that the machine slept, a clock was set, or a clock is not reliable any more.

use crate::arch::word::SharedWord;
use crate::channel::clock::ClockKind;
use crate::session::{Sessions, Worker};
use crate::sys::clock::{FollowClock, Leap};
use crate::sys::work::Ask;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::Arc;

const NSEC_PER_SEC: u64 = 1_000_000_000;

/// The mark in traces whose clock is the time stamp counter.
const UNSTABLE: &str =
    "clock: the kernel has found the time stamp counter unstable; later times may be wrong";

/// Sums of the leaps of the clocks that are not marked yet, in nanoseconds.
pub(crate) struct Leaps {
    slept: SharedWord,
    missed: SharedWord,
    stood: SharedWord,
    /// A signed number.
    set: SharedWord,
    /// Not 0 if the time stamp counter is not trusted any more.
    distrusted: SharedWord,
    worker: Arc<Worker>,
}

impl Leaps {
    /// Without leaps. `worker` is queued to [mark](Sessions::mark_leaps) them.
    pub(crate) fn new(worker: &Arc<Worker>) -> Self {
        Self {
            slept: SharedWord::new(0),
            missed: SharedWord::new(0),
            stood: SharedWord::new(0),
            set: SharedWord::new(0),
            distrusted: SharedWord::new(0),
            worker: worker.clone(),
        }
    }
}

impl FollowClock for Arc<Leaps> {
    fn leapt(&self, leap: &Leap) {
        self.slept.add(leap.slept);
        self.missed.add(leap.missed);
        self.stood.add(leap.stood);
        self.set.add(leap.set as u64);
        self.distrusted.add(leap.distrusted.into());
        self.worker.ask();
    }
}

/// Sets the word to 0. Returns the old value.
fn take(word: &SharedWord) -> u64 {
    loop {
        let value = word.load();
        if word.compare_exchange(value, 0) {
            return value;
        }
    }
}

impl Sessions {
    /// Marks the leaps that are not marked yet in each active session. May sleep.
    pub(in crate::session) fn mark_leaps(&self) {
        let leaps = &self.shared.leaps;
        let (slept, missed) = (take(&leaps.slept), take(&leaps.missed));
        let stood = take(&leaps.stood);
        let set = take(&leaps.set) as i64;
        if slept != 0 {
            self.mark_leap("the machine slept for", slept);
        } else if missed != 0 {
            self.mark_leap("the time stamp counter missed", missed);
        }
        if stood != 0 {
            self.mark_leap("the kernel's clocks stood still for", stood);
        }
        match set {
            0 => {}
            1.. => self.mark_leap("the wall clock was set forward by", set as u64),
            _ => self.mark_leap("the wall clock was set back by", set.unsigned_abs()),
        }
        if take(&leaps.distrusted) != 0 {
            self.for_each(|session| {
                if matches!(session.clock(), ClockKind::Tsc { .. }) {
                    session.take_marker(UNSTABLE);
                }
            });
        }
    }

    /// Records a mark. Without memory there is no mark.
    fn mark_leap(&self, what: &str, ns: u64) {
        let (seconds, rest) = (ns / NSEC_PER_SEC, ns % NSEC_PER_SEC);
        let Ok(text) = CString::try_from_fmt(fmt!("clock: {what} {seconds}.{rest:09} s")) else {
            return;
        };
        let text = text.to_str().unwrap_or_default();
        self.for_each(|session| {
            session.take_marker(text);
        });
    }
}
