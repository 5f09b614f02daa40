// SPDX-License-Identifier: GPL-2.0

//! The causes of the waits of some threads (`rtrace why`).
//!
//! The waits are those of the schedule: their sums are those of `--threads`. For each wait, the analysis finds the place
//! in which the thread slept ([`places`]), its waker, and what the waker did meanwhile. The waker's activity is the
//! critical path from the begin of the wait to its end, from the same [`History`]. For a wait for a CPU, the analysis
//! finds the threads and interrupts that ran there. It sums the parts up in a [`Tree`].
//!
//! Memory holds the tree, an entry for each thread, and the history since the begin of the oldest wait of the threads,
//! up to the limit of [`History`].

mod answer;
mod numbers;
mod parts;
mod places;
mod recent;
mod row;
mod tree;
mod waits;
mod who;

pub use who::{ask, find, Threads, Who};

use crate::critical_path::handlers::{self, Handlers, Waker};
use crate::critical_path::history::History;
use crate::critical_path::wakeups::{Wakeup, Wakeups};
use crate::head::Extent;
use crate::interrupts::Interrupt;
use crate::io::requests::{Done, Requests};
use crate::schedule::{Schedule, Span};
use crate::schedule_events::{Activity, Switch};
use crate::tasks::Life;
use crate::threads::Waiter;
use crate::{key, Analysis, Answer, Catalogue, EventKey, Missing, Moment};
use ahash::{HashMap, HashSet};
pub(crate) use answer::Found;
use ctf::{Clock, Event};
use numbers::Numbers;
use places::Places;
use recent::{request, Recent};
use std::path::Path;
use system::printing;
use tree::{Cause, Reason, Tree};

/// Number of changes of the history from which on it is pruned.
const PRUNED: usize = 1 << 16;

/// Analysis of the causes of the waits of some threads.
pub struct Why {
    clock: Clock,
    threads: Vec<Waiter>,
    chosen: HashSet<(i64, Life)>,
    /// The range of time that is asked about.
    range: Extent,
    handlers: Handlers,
    places: Places,
    requests: Option<Requests>,
    wakeups: Wakeups<Woken>,
    /// The event of switches, whose number follows those of all others.
    switches: Option<EventKey>,
    history: History,
    /// Number of changes from which on the history is pruned.
    pruned: usize,
    /// Sleeps that have just ended, and whose wakers are not known yet, by thread.
    slept: HashMap<i64, Span>,
    /// Waits whose ends are not in the trace.
    cut: Vec<(Span, Option<u32>)>,
    recent: Recent,
    /// Names of threads, handlers and requests.
    names: Numbers<String>,
    tree: Tree,
    /// The first event in the range.
    begin: Option<u64>,
    /// Time from there until the wake-up of threads that slept since the begin of the trace.
    before: u64,
    /// Threads that have had an event.
    seen: HashSet<(i64, Life)>,
}

/// A wake-up: its source, and the request that it ends.
#[derive(Clone, Debug)]
struct Woken {
    waker: Waker,
    done: Option<Done>,
    /// Number of the waker's call stack, if the waker is a thread.
    stack: Option<u32>,
}

impl Why {
    /// Creates the analysis of these threads in a range of time of the trace in `dir`. It reads the whole trace: the causes
    /// of a wait may be outside the range.
    pub fn new(
        catalogue: &Catalogue<'_>,
        dir: &Path,
        threads: Vec<Waiter>,
        range: Extent,
    ) -> Result<Self, Missing> {
        who::check(catalogue)?;
        Ok(Self {
            clock: catalogue.metadata().clock,
            chosen: threads.iter().map(|thread| thread.id).collect(),
            threads,
            range,
            handlers: Handlers::new(catalogue),
            places: Places::new(catalogue, dir),
            requests: Requests::new(catalogue),
            wakeups: Wakeups::new(catalogue),
            switches: catalogue.event("sched_switch").map(key),
            history: History::default(),
            pruned: PRUNED,
            slept: HashMap::default(),
            cut: Vec::new(),
            recent: Recent::default(),
            names: Numbers::new(),
            tree: Tree::default(),
            begin: None,
            before: 0,
            seen: HashSet::default(),
        })
    }

    /// Notes the time of an event.
    fn begin(&mut self, now: u64) {
        if self.range.begin() <= now {
            self.begin.get_or_insert(now);
        }
    }

    fn is_chosen(&self, tid: i64, schedule: &Schedule) -> bool {
        self.chosen.contains(&(tid, schedule.life(tid)))
    }

    /// Returns the number of a thread's name.
    fn name(&mut self, tid: i64, schedule: &Schedule) -> u32 {
        let comm = schedule.comm(tid).or_else(|| self.history.comm(tid));
        self.names.of(match comm {
            Some(comm) => printing::text(comm).into_owned(),
            None => format!("thread {tid}"),
        })
    }

    /// Returns the source of a wake-up that happens now.
    fn waker(&mut self, event: &Event<'_>, now: &Moment<'_>) -> Woken {
        let done = self.recent.completed(now.cpu).cloned();
        let waker = match &done {
            Some(done) => Waker::Handler(request(done).into()),
            None => self.handlers.waker(now),
        };
        let stack = match waker {
            Waker::Thread(tid) => self.places.waker(event, tid),
            _ => None,
        };
        Woken {
            waker,
            done,
            stack: stack.map(|stack| self.names.of(stack)),
        }
    }

    /// Handles the wake-up of a thread.
    fn woken(&mut self, tid: i64, by: &Woken, now: &Moment<'_>) {
        self.history.woken(tid, now.time, &by.waker);
        if let Some(slept) = self.slept.remove(&tid) {
            match slept.to == now.time {
                true => self.follow(&slept, by, now.schedule),
                false => self.unknown(&slept, Reason::NoWaker),
            }
        } else if self.is_chosen(tid, now.schedule) {
            self.first(tid, now);
        }
        let state = now.schedule.state(tid);
        let is_new = matches!(state, Some((Activity::Runnable { .. }, since)) if since == now.time);
        if is_new && !self.history.is_on() && self.is_chosen(tid, now.schedule) {
            self.history.restart(now.time);
        }
    }

    /// Handles the end of an activity of a chosen thread.
    fn own(&mut self, span: &Span, schedule: &Schedule) {
        self.seen.insert((span.tid, span.life));
        if let Some(slept) = self.slept.remove(&span.tid) {
            self.unknown(&slept, Reason::NoWaker);
        }
        match span.state {
            Activity::Running => match schedule.state(span.tid) {
                Some((Activity::Runnable { .. } | Activity::Blocked(_), _))
                    if !self.history.is_on() =>
                {
                    self.history.restart(span.to);
                }
                _ => {}
            },
            Activity::Runnable { .. } | Activity::Blocked(_) if !span.is_complete => {
                let is_blocked = matches!(span.state, Activity::Blocked(_));
                let place = self.places.of(span.tid).filter(|_| is_blocked);
                self.cut.push((*span, place));
            }
            Activity::Runnable { woken } => self.waited(span, woken, schedule),
            Activity::Blocked(_) if !self.wakeups.has_waking() => {
                self.unknown(span, Reason::NoWakeups)
            }
            // The event that names the waker follows.
            Activity::Blocked(_) => drop(self.slept.insert(span.tid, *span)),
        }
    }

    /// Forgets what no wait of the chosen threads needs.
    fn prune(&mut self, now: u64, schedule: &Schedule) {
        let waits = self.chosen.iter().filter_map(|(tid, life)| {
            let (state, since) = schedule.state(*tid)?;
            (schedule.life(*tid) == *life && state != Activity::Running).then_some(since)
        });
        let slept = self.slept.values().map(|span| span.from);
        let oldest = waits.chain(slept).min().unwrap_or(now);
        self.history.forget_before(oldest);
        self.pruned = PRUNED.max(2 * self.history.size());
    }
}

impl Analysis for Why {
    fn events(&self) -> Vec<EventKey> {
        let requests = self.requests.iter().flat_map(Requests::events);
        let events = self.handlers.events().chain(self.places.events());
        let events = events.chain(requests).chain(self.wakeups.events());
        events.chain(self.switches).collect()
    }

    fn cost(&self) -> u32 {
        2
    }

    fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) {
        self.begin(now.time);
        if !now.schedule.is_whole(now.cpu) {
            return;
        }
        let handlers = self.handlers.events().count();
        let Some(which) = which.checked_sub(handlers) else {
            self.recent.leave(now.cpu);
            if now.schedule.has_interrupts(now.cpu) {
                self.handlers.event(which, event, now);
            }
            return;
        };
        let places = self.places.events().count();
        let Some(which) = which.checked_sub(places) else {
            self.recent.leave(now.cpu);
            self.places.event(which, event, now, &mut self.history);
            return;
        };
        let requests = self.requests.iter().flat_map(Requests::events).count();
        let Some(which) = which.checked_sub(requests) else {
            let requests = self.requests.as_mut();
            let done = requests.and_then(|requests| requests.event(which, event, now));
            if let Some(done) = done {
                let handler = self.handlers.waker(now);
                self.recent
                    .complete(done, &handler, now.cpu, &mut self.names);
            }
            return;
        };
        let wakeups = self.wakeups.events().count();
        if which == wakeups {
            if let Some(switch) = &now.switch {
                self.places.leave(event, switch, now);
            }
            return;
        }
        match self.wakeups.read(which, event) {
            Some(Wakeup::Waking(tid)) => {
                let waker = self.waker(event, now);
                self.woken(tid, &waker, now);
                self.wakeups.keep_early(tid, waker, now.schedule);
            }
            Some(Wakeup::Woken(tid)) => {
                let waker = self.wakeups.early(tid).unwrap_or(Woken {
                    waker: Waker::Unknown,
                    done: None,
                    stack: None,
                });
                self.woken(tid, &waker, now);
            }
            Some(Wakeup::Born { tid, parent }) => {
                self.history.born(tid, now.time, parent);
                self.seen.insert((tid, now.schedule.life(tid)));
            }
            None => {}
        }
    }

    fn switch(&mut self, _switch: &Switch<'_>, now: &Moment<'_>) {
        self.begin(now.time);
        self.recent.leave(now.cpu);
        if now.schedule.is_whole(now.cpu) && now.schedule.has_interrupts(now.cpu) {
            self.handlers.switch(now);
        }
    }

    fn span(&mut self, span: &Span, schedule: &Schedule) {
        let is_blocked = matches!(span.state, Activity::Blocked(_));
        let place = self.places.of(span.tid).filter(|_| is_blocked);
        self.history.add(span, place, schedule);
        if self.history.size() > self.pruned {
            self.prune(span.to, schedule);
        }
        if self.chosen.contains(&(span.tid, span.life)) {
            self.own(span, schedule);
        }
    }

    fn wants_interrupts(&self) -> bool {
        true
    }

    fn interrupt(&mut self, interrupt: &Interrupt<'_>, schedule: &Schedule) {
        let name = self.names.of(handlers::name_of(interrupt.source));
        let from = interrupt.from;
        self.recent.interrupt(interrupt, name);
        let running = schedule.running(interrupt.cpu);
        let end = from.saturating_add(interrupt.ticks);
        let is_in_range = from <= self.range.end() && end >= self.range.begin();
        let running = running.filter(|tid| is_in_range && *tid != 0);
        if let Some(tid) = running.filter(|tid| self.is_chosen(*tid, schedule)) {
            let ticks = interrupt.own_ticks;
            let all = Cause::Interrupted { handler: None };
            let node = self.tree.add(all, (tid, from), from, ticks);
            let own = Cause::Interrupted {
                handler: Some(name),
            };
            node.below.add(own, (tid, from), from, ticks);
        }
    }

    fn interrupts_lost(&mut self, cpu: usize) {
        self.handlers.forget(cpu);
        self.recent.leave(cpu);
    }

    fn lost(&mut self, schedule: &Schedule, _time: u64) {
        self.handlers.lost(schedule);
        self.places.lost(schedule);
        self.history.stop();
        self.wakeups.lost();
        self.recent.lost();
        if let Some(requests) = &mut self.requests {
            requests.lost();
        }
        for (span, place) in std::mem::take(&mut self.cut) {
            self.unknown_at(&span, place, Reason::Lost);
        }
    }

    fn answer(mut self: Box<Self>, _ticks: u64) -> Box<dyn Answer> {
        for (span, place) in std::mem::take(&mut self.cut) {
            self.unknown_at(&span, place, Reason::Unfinished);
        }
        for slept in std::mem::take(&mut self.slept).into_values() {
            self.unknown(&slept, Reason::NoWaker);
        }
        Box::new(Found::new(*self))
    }
}
