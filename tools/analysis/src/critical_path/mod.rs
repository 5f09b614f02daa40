// SPDX-License-Identifier: GPL-2.0

//! The threads and waits that account for the time of a thread (`--critical-path`).
//!
//! While the thread runs, or is runnable and waits for a CPU, it is itself on the path. While it sleeps,
//! the path follows the thread that woke it. If the waker slept in that time, the path follows the waker's
//! own waker, and so on. The waker is the thread that runs on the CPU of the `sched_waking` event. If that
//! CPU is in the handler of an interrupt or a timer, the path shows the handler instead.
//!
//! The analysis reads the trace once, forward. While the thread is off its CPU, [`History`] keeps the
//! activity of all other threads. At its wake-up, the analysis follows the path back through the history.
//! Memory therefore holds three things, whatever the size of the trace:
//!
//! - the path, which is the answer;
//! - one entry per thread;
//! - at most 2^20 changes. If more happen during one sleep, its older part is unknown.
//!
//! No conclusion reaches across a loss. Where events of any CPU may be missing, the schedule forgets the
//! waits of all threads.

mod answer;
pub mod handlers;
pub mod history;
pub mod segment;
pub mod wakeups;

use super::schedule::{Schedule, Span};
use super::schedule_events::{Activity, Switch};
use crate::{Analysis, Answer, Catalogue, EventKey, Missing, Moment};
pub(crate) use answer::CriticalPathAnswer;
use ctf::{Clock, Event};
use handlers::{Handlers, Waker};
use history::History;
use segment::{Path, Segment, What};
use std::collections::HashMap;
use system::printing;
use terminal::date::PointInTime;
use wakeups::{Wakeup, Wakeups};

/// Analysis of the critical path of a thread.
pub struct CriticalPath {
    clock: Clock,
    tid: i64,
    /// End of the path, if the user gave one.
    to: Option<PointInTime>,
    /// `to` in clock ticks; set at the first event.
    limit: Option<u64>,
    handlers: Handlers,
    /// Its events follow those of the handlers.
    wakeups: Wakeups<Waker>,
    history: History,
    /// Sleep of the thread that has just ended, and whose waker is not known yet.
    slept: Option<Span>,
    path: Path,
    names: HashMap<i64, String>,
    is_over: bool,
}

impl CriticalPath {
    /// Creates the analysis for the thread `tid` in a trace with these events. If `to` is given, the path
    /// ends there.
    pub fn new(
        catalogue: &Catalogue<'_>,
        tid: i64,
        to: Option<PointInTime>,
    ) -> Result<Self, Missing> {
        let missing = |events| Missing {
            option: "--critical-path",
            events,
            record: "-e sched_switch,'sched_wak*',sched_process_fork,irq -e 'timer_*expire*'"
                .into(),
        };
        if !catalogue.has_switches() {
            return Err(missing("sched_switch"));
        }
        let wakeups = Wakeups::new(catalogue);
        if !wakeups.has_waking() {
            return Err(missing("sched_waking"));
        }
        Ok(Self {
            clock: catalogue.metadata().clock,
            tid,
            to,
            limit: None,
            handlers: Handlers::new(catalogue),
            wakeups,
            history: History::default(),
            slept: None,
            path: Path::default(),
            names: HashMap::new(),
            is_over: false,
        })
    }

    /// Handles the wake-up of a thread by `waker`.
    fn woken(&mut self, tid: i64, waker: &Waker, now: &Moment<'_>) {
        if tid != self.tid {
            self.history.woken(tid, now.time, waker);
            return;
        }
        if self.slept.is_some_and(|slept| slept.to == now.time) {
            self.follow(waker, now.schedule);
        }
        // The state of the thread before the wake-up may be unknown.
        let state = now.schedule.state(tid);
        if !self.is_over
            && matches!(state, Some((Activity::Runnable { .. }, since)) if since == now.time)
        {
            self.history.restart(now.time);
        }
    }

    /// Adds the path of the threads that the thread slept for.
    fn follow(&mut self, waker: &Waker, schedule: &Schedule) {
        let Some(Span { from, to, .. }) = self.slept.take() else {
            return;
        };
        let own = |what| Segment {
            tid: self.tid,
            from,
            to,
            what,
            wakes: None,
            place: None,
            chain: None,
        };
        match waker {
            Waker::Thread(waker) => {
                for segment in self.history.path(*waker, self.tid, from, to, schedule) {
                    self.push(segment, schedule);
                }
            }
            Waker::Handler(name) => self.push(own(What::WokenBy(name.clone())), schedule),
            Waker::Unknown => self.push(own(What::Unknown), schedule),
        }
    }

    fn push(&mut self, segment: Segment, schedule: &Schedule) {
        if self.is_over {
            return;
        }
        let runner = match segment.what {
            What::WaitedFor(Some((_, runner))) => runner,
            _ => None,
        };
        for tid in [Some(segment.tid), segment.wakes, runner]
            .into_iter()
            .flatten()
        {
            let comm = schedule.comm(tid).or_else(|| self.history.comm(tid));
            if let Some(comm) = comm.filter(|_| tid != 0) {
                let known = self.names.entry(tid).or_default();
                if known.as_bytes() != comm {
                    *known = printing::text(comm).into_owned();
                }
            }
        }
        self.path.push(segment, self.tid);
        if let Some(limit) = self.limit.filter(|limit| self.path.end() >= Some(*limit)) {
            self.path.cut(limit);
            self.is_over = true;
            self.history.stop();
        }
    }

    /// Handles the end of an activity of the analysed thread.
    fn own(&mut self, span: &Span, schedule: &Schedule) {
        self.follow(&Waker::Unknown, schedule);
        let Span { tid, from, to, .. } = *span;
        let own = |from, to, what| Segment {
            tid,
            from,
            to,
            what,
            wakes: None,
            place: None,
            chain: None,
        };
        match span.state {
            Activity::Running => {
                self.push(own(from, to, What::Ran), schedule);
                match schedule.state(tid) {
                    Some((Activity::Runnable { .. } | Activity::Blocked(_), _))
                        if !self.is_over =>
                    {
                        self.history.restart(to);
                    }
                    _ => self.history.stop(),
                }
            }
            Activity::Runnable { .. } => {
                let mut waited = Vec::new();
                self.history
                    .waited(span.cpu, from, to, schedule, |from, to, what| {
                        waited.push(own(from, to, what));
                    });
                for segment in waited.into_iter().rev() {
                    self.push(segment, schedule);
                }
                self.history.stop();
            }
            // The event that names the waker follows.
            Activity::Blocked(_) if span.is_complete => self.slept = Some(*span),
            Activity::Blocked(_) => {
                self.push(own(from, to, What::Unknown), schedule);
                self.history.stop();
            }
        }
    }

    /// Converts the end of the path at the first event, whose time gives the day.
    fn begin(&mut self, now: u64) {
        if let (Some(to), None) = (self.to, self.limit) {
            let clock = self.clock.nanoseconds(now);
            let left = to.after_begin(clock, self.clock.since_epoch(now)).max(0);
            let ticks = left.saturating_mul(self.clock.frequency.into()) / 1_000_000_000;
            let ticks = u64::try_from(ticks).unwrap_or(u64::MAX);
            self.limit = Some(now.saturating_add(ticks));
        }
    }
}

impl Analysis for CriticalPath {
    fn events(&self) -> Vec<EventKey> {
        let handlers = self.handlers.events();
        handlers.chain(self.wakeups.events()).collect()
    }

    fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) {
        self.begin(now.time);
        if !now.schedule.is_whole(now.cpu) {
            return;
        }
        let Some(which) = which.checked_sub(self.handlers.events().count()) else {
            if now.schedule.has_interrupts(now.cpu) {
                self.handlers.event(which, event, now);
            }
            return;
        };
        match self.wakeups.read(which, event) {
            Some(Wakeup::Waking(tid)) => {
                let waker = self.handlers.waker(now);
                self.woken(tid, &waker, now);
                self.wakeups.keep_early(tid, waker, now.schedule);
            }
            Some(Wakeup::Woken(tid)) => {
                let waker = self.wakeups.early(tid).unwrap_or(Waker::Unknown);
                self.woken(tid, &waker, now);
            }
            Some(Wakeup::Born { tid, parent }) => {
                if tid == self.tid && !self.is_over {
                    // A new thread has this id: the earlier thread with the id has ended.
                    self.path = Path::default();
                    self.names.clear();
                }
                self.history.born(tid, now.time, parent);
            }
            None => {}
        }
    }

    fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) {
        self.begin(now.time);
        if now.schedule.is_whole(now.cpu) && now.schedule.has_interrupts(now.cpu) {
            self.handlers.switch(now);
        }
        if switch.next_tid == self.tid {
            // The thread runs, and no event named its waker.
            self.follow(&Waker::Unknown, now.schedule);
            self.history.stop();
        }
    }

    fn span(&mut self, span: &Span, schedule: &Schedule) {
        if span.tid == self.tid {
            self.own(span, schedule);
        } else {
            self.history.add(span, None, schedule);
        }
    }

    fn interrupts_lost(&mut self, cpu: usize) {
        self.handlers.forget(cpu);
    }

    fn lost(&mut self, schedule: &Schedule, _time: u64) {
        self.handlers.lost(schedule);
        self.history.stop();
        self.wakeups.lost();
    }

    fn answer(self: Box<Self>, _ticks: u64) -> Box<dyn Answer> {
        Box::new(CriticalPathAnswer::new(
            self.clock,
            self.tid,
            self.path.segments(),
            &self.names,
            self.handlers.has_all(),
            self.history.forgotten(),
        ))
    }
}
