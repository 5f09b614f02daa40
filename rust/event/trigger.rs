// SPDX-License-Identifier: GPL-2.0

//! Triggers: what an event brings about, recorded or not.
//!
//! An event fires in any context, and most of what a trigger brings about sleeps. So the decision is
//! made where the event fires, and what can be done there is done: gates are closed. For the rest a
//! session is asked, in a thread. What is asked for again before it is done is done once.

use super::filter::Filter;
use crate::arch::clock::monotonic_ns;
use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::channel::stopper::Stopper;
use crate::input::trigger::{self as input, Action};
use crate::sys::work::Ask;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::Arc;

/// So often as it comes.
const UNLIMITED: u64 = u64::MAX;

/// A trigger of a session at an event.
pub(crate) struct Trigger {
    action: Action,
    /// The other session that it happens to.
    session: Option<CString>,
    packets: u64,
    filter: Option<Arc<Filter>>,
    /// As it can be written again, but for the filter.
    text: CString,
    stopper: Arc<Stopper>,
    worker: Arc<dyn Ask>,
    /// How often it may still fire.
    left: SharedWord,
    /// Not 0 from a firing until what it asked for is done. Who sets it writes the words below.
    pending: SharedWord,
    fired: SharedWord,
    /// When it fired last, in nanoseconds of the monotonic clock.
    time: SharedWord,
    /// Firings while one was pending.
    merged: SharedWord,
    /// What was asked for and could not be done.
    failed: SharedWord,
}

/// What a trigger has done.
pub(crate) struct Counts {
    /// How often it fired.
    pub(crate) fired: u64,
    /// How often it would have, while the last time was not done yet.
    pub(crate) merged: u64,
    /// How often what it asked for could not be done.
    pub(crate) failed: u64,
    /// When it fired last, in nanoseconds of the monotonic clock; 0 before the first time.
    pub(crate) time: u64,
}

impl Trigger {
    /// Makes one of the session that has `stopper`, and is acted for by `worker`. May sleep.
    pub(crate) fn new(
        parsed: &input::Trigger<'_>,
        filter: Option<Arc<Filter>>,
        stopper: Arc<Stopper>,
        worker: Arc<dyn Ask>,
    ) -> Result<Arc<Self>> {
        let session = parsed
            .session
            .map(|name| CString::try_from_fmt(fmt!("{name}")));
        let bare = input::Trigger {
            filter: None,
            ..*parsed
        };
        let trigger = Self {
            action: parsed.action,
            session: session.transpose()?,
            packets: parsed.packets,
            filter,
            text: CString::try_from_fmt(fmt!("{}", format_args!("{bare}")))?,
            stopper,
            worker,
            left: SharedWord::new(match parsed.count {
                0 => UNLIMITED,
                count => count,
            }),
            pending: SharedWord::new(0),
            fired: SharedWord::new(0),
            time: SharedWord::new(0),
            merged: SharedWord::new(0),
            failed: SharedWord::new(0),
        };
        Ok(Arc::new(trigger, GFP_KERNEL)?)
    }

    /// What it brings about.
    pub(crate) fn action(&self) -> Action {
        self.action
    }

    /// The other session that it happens to, if it is another.
    pub(crate) fn session(&self) -> Option<&str> {
        self.session.as_ref()?.to_str().ok()
    }

    /// Of which records.
    pub(crate) fn filter(&self) -> Option<&Arc<Filter>> {
        self.filter.as_ref()
    }

    /// Whether it brings about the same.
    pub(crate) fn does(&self, parsed: &input::Trigger<'_>) -> bool {
        self.action == parsed.action && self.session() == parsed.session
    }

    /// The event has happened. Any context, NMI included.
    #[cold]
    #[inline(never)]
    pub(super) fn fire(&self, guard: &NoPreempt) {
        if self.left.load() == 0 || !self.is_due(guard) {
            return;
        }
        if self.is_under_way() || !self.pending.compare_exchange(0, 1) {
            return self.merged.increment();
        }
        // Nobody else comes here until the worker has cleared `pending`.
        match self.left.load() {
            0 => return self.pending.store(0),
            UNLIMITED => {}
            left => self.left.store(left.wrapping_sub(1)),
        }
        self.time.store(monotonic_ns());
        self.fired.store(self.fired.load().wrapping_add(1));
        match self.action {
            Action::TraceOff if self.session.is_none() => self.stopper.stop(guard),
            Action::TraceOffAfter => self.stopper.stop_after(self.packets),
            Action::TraceOn | Action::TraceOff | Action::Snapshot => {}
        }
        self.worker.ask();
    }

    /// Whether there is something to do. What another session does is not known here.
    fn is_due(&self, guard: &NoPreempt) -> bool {
        let is_recording = || self.stopper.is_recording(guard);
        match self.action {
            Action::Snapshot => true,
            _ if self.session.is_some() => true,
            Action::TraceOn => !is_recording(),
            Action::TraceOff | Action::TraceOffAfter => is_recording(),
        }
    }

    /// Whether another trigger has asked for the same already.
    fn is_under_way(&self) -> bool {
        self.action == Action::TraceOffAfter && self.stopper.is_counting()
    }

    /// If it asked for something, calls `act` to do that. One caller at a time. Says whether it
    /// did.
    pub(crate) fn serve(&self, act: impl FnOnce() -> Result) -> bool {
        if self.pending.load_acquire() == 0 {
            return false;
        }
        if act().is_err() {
            self.failed.increment();
        }
        self.pending.store_release(0);
        true
    }

    /// What it has done.
    pub(crate) fn counts(&self) -> Counts {
        Counts {
            fired: self.fired.load(),
            merged: self.merged.load(),
            failed: self.failed.load(),
            time: self.time.load(),
        }
    }
}

/// As it can be written again.
impl core::fmt::Display for Trigger {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.text.to_str().unwrap_or(""))?;
        match &self.filter {
            Some(filter) => write!(f, " if {}", filter.expression()),
            None => Ok(()),
        }
    }
}
