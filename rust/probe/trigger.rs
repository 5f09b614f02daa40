// SPDX-License-Identifier: GPL-2.0

//! Triggers: actions of events, whether the events are recorded or not.
//!
//! An event fires in any context, but most actions sleep. So the event's context makes the decision, and
//! executes the part that it can: it closes gates, and records markers and stacks. A thread executes the rest
//! for the session. If an action is requested again before it was executed, it is executed once.

use super::builtin::{Builtin, BuiltinProbes};
use super::filter::Filter;
use crate::arch::clock::monotonic_ns;
use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::channel::stopper::Stopper;
use crate::channel::Ways;
use crate::context::{Context, Moment};
use crate::input::trigger::{self as input, Action};
use crate::sys::work::Ask;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::Arc;

/// No limit.
const UNLIMITED: u64 = u64::MAX;

/// A trigger of a session at an event.
pub(crate) struct Trigger {
    action: Action,
    /// The other session to which the action applies.
    session: Option<CString>,
    packets: u64,
    /// Text of a marker.
    marker: Option<CString>,
    filter: Option<Arc<Filter>>,
    /// The trigger in the form in which it can be set again, without the filter.
    text: CString,
    services: Services,
    /// Number of times that it may still fire.
    left: SharedWord,
    /// Non-zero from a firing until its action is executed.
    pending: SharedWord,
    fired: SharedWord,
    /// Time of the last firing, in nanoseconds of the monotonic clock.
    time: SharedWord,
    /// Process and thread of the last firing that requested an action: their ids, and the thread's name.
    pid: SharedWord,
    tid: SharedWord,
    comm: [SharedWord; 2],
    /// Firings while one was pending.
    merged: SharedWord,
    /// Number of requested actions that failed.
    failed: SharedWord,
}

/// The objects through which a session's triggers act.
pub(crate) struct Services {
    /// Stops the session.
    pub(crate) stopper: Arc<Stopper>,
    /// Records built-in events in the session.
    pub(crate) builtins: Arc<BuiltinProbes>,
    /// Executes the other actions.
    pub(crate) worker: Arc<dyn Ask>,
    /// The gates that stop each probe of the triggers.
    pub(crate) closed: Ways,
}

/// The built-in event that an action records, if it records one.
pub(crate) fn builtin(action: Action) -> Option<Builtin> {
    match action {
        Action::Marker => Some(Builtin::Marker),
        Action::Stacktrace => Some(Builtin::Stack),
        Action::TraceOn | Action::TraceOff | Action::TraceOffAfter | Action::Snapshot => None,
    }
}

/// Counts of a trigger.
pub(crate) struct Counts {
    /// Number of firings.
    pub(crate) fired: u64,
    /// Number of firings that were merged, because the previous action was not executed yet.
    pub(crate) merged: u64,
    /// Number of actions that failed.
    pub(crate) failed: u64,
    /// Time of the last firing, in nanoseconds of the monotonic clock; 0 before the first one.
    pub(crate) time: u64,
    /// Process of the last firing; 0 before the first one, and for markers and stacks, whose records name it.
    pub(crate) pid: u64,
    /// Its thread; 0 when there is no process.
    pub(crate) tid: u64,
    /// Name of the thread, padded with NUL.
    pub(crate) comm: [u8; 16],
}

impl Trigger {
    /// Creates a trigger of the session that has these `services`. May sleep.
    pub(crate) fn new(
        parsed: &input::TriggerLine<'_>,
        filter: Option<Arc<Filter>>,
        services: Services,
    ) -> Result<Arc<Self>> {
        let copy = |text: &str| CString::try_from_fmt(fmt!("{text}"));
        let bare = input::TriggerLine {
            filter: None,
            ..*parsed
        };
        let trigger = Self {
            action: parsed.action,
            session: parsed.session.map(copy).transpose()?,
            packets: parsed.packets,
            marker: parsed.text.map(copy).transpose()?,
            filter,
            text: CString::try_from_fmt(fmt!("{}", format_args!("{bare}")))?,
            services,
            left: SharedWord::new(match parsed.count {
                0 => UNLIMITED,
                count => count,
            }),
            pending: SharedWord::new(0),
            fired: SharedWord::new(0),
            time: SharedWord::new(0),
            pid: SharedWord::new(0),
            tid: SharedWord::new(0),
            comm: [const { SharedWord::new(0) }; 2],
            merged: SharedWord::new(0),
            failed: SharedWord::new(0),
        };
        Ok(Arc::new(trigger, GFP_KERNEL)?)
    }

    /// The action of the trigger.
    pub(crate) fn action(&self) -> Action {
        self.action
    }

    /// The other session to which the action applies, if there is one.
    pub(crate) fn session(&self) -> Option<&str> {
        self.session.as_ref()?.to_str().ok()
    }

    /// The gates that stop its probe.
    pub(crate) fn closed(&self) -> &Ways {
        &self.services.closed
    }

    /// The trigger's filter.
    pub(crate) fn filter(&self) -> Option<&Arc<Filter>> {
        self.filter.as_ref()
    }

    /// Whether the action is the same. Without a given text, a marker of any text is.
    pub(crate) fn does(&self, parsed: &input::TriggerLine<'_>) -> bool {
        let marker = self.marker.as_ref().map(|text| text.to_bytes());
        self.action == parsed.action
            && self.session() == parsed.session
            && parsed
                .text
                .is_none_or(|text| marker == Some(text.as_bytes()))
    }

    /// Fires the trigger after its event. Any context, NMI included.
    #[cold]
    #[inline(never)]
    pub(crate) fn fire(&self, now: Moment<'_>) {
        match builtin(self.action) {
            Some(builtin) => self.record(builtin, now),
            None => self.request(now),
        }
    }

    /// Records a built-in event at once, on any number of CPUs at the same time.
    fn record(&self, builtin: Builtin, now: Moment<'_>) {
        let guard = now.guard;
        let Some(probe) = self.services.builtins.of(builtin).get(guard) else {
            return;
        };
        if !probe.is_recording_here(guard) || !self.take_one() {
            return;
        }
        self.count();
        match (builtin, &self.marker) {
            (Builtin::Marker, Some(text)) => probe.record_marker(text.to_bytes(), now),
            (Builtin::Marker, None) => {}
            (Builtin::Stack, _) => probe.record_stack(now),
        }
    }

    /// Executes the part of the action that is possible here, and queues the rest.
    fn request(&self, now: Moment<'_>) {
        let guard = now.guard;
        if self.left.load() == 0 || !self.is_due(guard) {
            return;
        }
        if self.is_under_way() || !self.pending.compare_exchange(0, 1) {
            return self.merged.increment();
        }
        // No other context comes here until the worker has cleared `pending`.
        if !self.take_one() {
            return self.pending.store(0);
        }
        self.pid.store(Context::Pid.number(&now).unwrap_or(0));
        self.tid.store(Context::Tid.number(&now).unwrap_or(0));
        let comm = u128::from_le_bytes(Context::Comm.text().unwrap_or_default());
        self.comm[0].store(comm as u64);
        self.comm[1].store((comm >> u64::BITS) as u64);
        self.count();
        match self.action {
            Action::TraceOff if self.session.is_none() => self.services.stopper.stop(guard),
            Action::TraceOffAfter => self.services.stopper.stop_after(self.packets),
            _ => {}
        }
        self.services.worker.ask();
    }

    /// Takes one of the firings that are left.
    fn take_one(&self) -> bool {
        loop {
            let left = self.left.load();
            match left {
                0 => return false,
                UNLIMITED => return true,
                _ if self.left.compare_exchange(left, left.wrapping_sub(1)) => return true,
                _ => {}
            }
        }
    }

    /// Counts a firing.
    fn count(&self) {
        self.time.store(monotonic_ns());
        self.fired.increment();
    }

    /// Whether the action has an effect now. The state of another session is unknown here.
    fn is_due(&self, guard: &NoPreempt) -> bool {
        let is_recording = || self.services.stopper.is_recording(guard);
        match self.action {
            _ if self.session.is_some() => true,
            Action::TraceOn => !is_recording(),
            Action::TraceOff | Action::TraceOffAfter => is_recording(),
            Action::Snapshot | Action::Marker | Action::Stacktrace => true,
        }
    }

    /// Whether another trigger has requested the same already.
    fn is_under_way(&self) -> bool {
        self.action == Action::TraceOffAfter && self.services.stopper.is_counting()
    }

    /// If an action is pending, calls `act` to execute it. One caller at a time. Returns whether one was
    /// pending.
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

    /// The counts.
    pub(crate) fn counts(&self) -> Counts {
        Counts {
            fired: self.fired.load(),
            merged: self.merged.load(),
            failed: self.failed.load(),
            time: self.time.load(),
            pid: self.pid.load(),
            tid: self.tid.load(),
            comm: (u128::from(self.comm[1].load()) << u64::BITS | u128::from(self.comm[0].load()))
                .to_le_bytes(),
        }
    }
}

/// The form in which the trigger can be set again.
impl core::fmt::Display for Trigger {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.text.to_str().unwrap_or(""))?;
        match &self.filter {
            Some(filter) => write!(f, " if {}", filter.expression()),
            None => Ok(()),
        }
    }
}
