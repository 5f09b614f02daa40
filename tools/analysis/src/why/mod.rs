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
mod who;

pub use who::{ask, find, Threads, Who};

use crate::critical_path::handlers::{self, Handlers, Waker};
use crate::critical_path::history::History;
use crate::critical_path::segment::What;
use crate::interrupts::Interrupt;
use crate::io::requests::{Done, Requests};
use crate::schedule::{Schedule, Span};
use crate::schedule_events::Activity;
use crate::schedule_events::{ForkFields, Switch, TaskFields};
use crate::tasks::Life;
use crate::threads::Waiter;
use crate::{key, Analysis, Answer, Catalogue, EventKey, Missing, Moment};
use ahash::{HashMap, HashMapExt, HashSet};
use answer::Found;
use ctf::{Clock, Event, EventLayout};
use numbers::Numbers;
use places::Places;
use recent::{request, Recent};
use std::path::Path;
use system::printing;
use tree::{By, Cause, Reason, Runner, Tree};

/// Number of changes of the history from which on it is pruned.
const PRUNED: usize = 1 << 16;

/// Analysis of the causes of the waits of some threads.
pub struct Why {
    clock: Clock,
    threads: Vec<Waiter>,
    chosen: HashSet<(i64, Life)>,
    has_waking: bool,
    handlers: Handlers,
    places: Places,
    requests: Option<Requests>,
    /// Events whose numbers follow the numbers of the others.
    others: Vec<(EventKey, Other)>,
    /// Wakers of threads that are woken before they have gone to sleep.
    early: HashMap<i64, Woken>,
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
    /// Begin of the trace.
    begin: Option<u64>,
    /// Time from the begin of the trace until the wake-up of threads that slept at its begin.
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

/// An event of the scheduler, with the indexes of its fields.
#[derive(Clone, Copy)]
enum Other {
    Switch,
    /// The running thread or handler is about to wake a thread.
    Waking(TaskFields),
    /// A thread was woken.
    Woken(TaskFields),
    Fork(ForkFields),
}

impl Why {
    /// Creates the analysis of these threads of the trace in `dir`.
    pub fn new(
        catalogue: &Catalogue<'_>,
        dir: &Path,
        threads: Vec<Waiter>,
    ) -> Result<Self, Missing> {
        who::check(catalogue)?;
        let other = |name, kind: fn(&EventLayout) -> Option<Other>| {
            let layout = catalogue.event(name)?;
            Some((key(layout), kind(layout)?))
        };
        let woken = |layout: &EventLayout| TaskFields::of(layout).map(Other::Woken);
        let waking = other("sched_waking", |layout| {
            TaskFields::of(layout).map(Other::Waking)
        });
        let has_waking = waking.is_some();
        let others = [
            other("sched_switch", |_| Some(Other::Switch)),
            waking,
            other("sched_wakeup", woken),
            other("sched_wakeup_new", woken),
            other("sched_process_fork", |layout| {
                ForkFields::of(layout).map(Other::Fork)
            }),
        ];
        Ok(Self {
            clock: catalogue.metadata().clock,
            chosen: threads.iter().map(|thread| thread.id).collect(),
            threads,
            has_waking,
            handlers: Handlers::new(catalogue),
            places: Places::new(catalogue, dir),
            requests: Requests::new(catalogue),
            others: others.into_iter().flatten().collect(),
            early: HashMap::new(),
            history: History::default(),
            pruned: PRUNED,
            slept: HashMap::new(),
            cut: Vec::new(),
            recent: Recent::default(),
            names: Numbers::new(),
            tree: Tree::default(),
            begin: None,
            before: 0,
            seen: HashSet::default(),
        })
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

    /// Handles a wake-up that ends no known sleep. If it is the thread's first event, the thread slept since before the
    /// trace.
    fn first(&mut self, tid: i64, now: &Moment<'_>) {
        let is_first = self.seen.insert((tid, now.schedule.life(tid)));
        if let (true, Some(begin)) = (is_first, self.begin) {
            self.before = self.before.saturating_add(now.time.saturating_sub(begin));
        }
    }

    /// Adds a sleep that has ended, with its causes.
    fn follow(&mut self, slept: &Span, by: &Woken, schedule: &Schedule) {
        let place = self.places.of(slept.tid);
        let known = place.and_then(|place| self.places.get(place));
        let is_pause = known.is_some_and(places::Place::is_pause);
        let is_lock = known.is_some_and(|place| place.lock.is_some());
        let by_what = match (&by.waker, &by.done) {
            _ if is_pause => By::Timer,
            (_, Some(done)) => By::Request(self.names.of(request(done))),
            (Waker::Handler(name), None) => By::Handler(self.names.of(name.to_string())),
            (Waker::Thread(waker), None) => By::Thread(self.name(*waker, schedule)),
            (Waker::Unknown, None) => return self.unknown(slept, Reason::NoWaker),
        };
        // Several threads may hold a lock after each other.
        let holder = match by_what {
            By::Thread(waker) if is_lock => Some(waker),
            _ => None,
        };
        let cause = Cause::Blocked {
            who: None,
            place,
            by: holder.map_or(by_what, |_| By::Holders),
        };
        let instance = (slept.tid, slept.from);
        match (by_what, &by.waker, &by.done) {
            (By::Thread(_), Waker::Thread(waker_tid), _) => {
                let path = self
                    .history
                    .path(*waker_tid, slept.tid, slept.from, slept.to, schedule);
                let parts = self.parts(&path, slept.tid, schedule);
                let mut node = self.tree.add(cause, instance, slept.from, slept.ticks());
                node.thread(*waker_tid);
                if let Some(waker) = holder {
                    let until = Cause::Until { waker };
                    let below = &mut node.below;
                    node = below.add(until, instance, slept.from, slept.ticks());
                    node.thread(*waker_tid);
                }
                if let Some(stack) = by.stack {
                    *node.stacks.entry(stack).or_default() += slept.ticks();
                }
                for part in parts {
                    part.add(node);
                }
            }
            (By::Request(_), _, Some(done)) => {
                let ahead = self.recent.ahead(done, &mut self.names);
                let node = self.tree.add(cause, instance, slept.from, slept.ticks());
                let clip = |time: u64| time.min(slept.to).max(slept.from);
                if let Some(inserted) = done.inserted {
                    let (from, to) = (clip(inserted), clip(done.issued));
                    let queued =
                        node.below
                            .add(Cause::Queued, instance, from, to.saturating_sub(from));
                    for (name, count) in ahead {
                        *queued.ahead.entry(name).or_default() += count;
                    }
                }
                let (from, to) = (clip(done.issued), clip(done.ended));
                node.below
                    .add(Cause::Served, instance, from, to.saturating_sub(from));
            }
            _ => {
                self.tree.add(cause, instance, slept.from, slept.ticks());
            }
        }
    }

    /// Adds a wait for a CPU, with the threads and interrupts that ran there.
    fn waited(&mut self, span: &Span, woken: bool, schedule: &Schedule) {
        let mut parts = Vec::new();
        self.history
            .waited(span.cpu, span.from, span.to, schedule, |from, to, what| {
                let runner = match what {
                    What::WaitedFor(Some((_, runner))) => runner,
                    _ => None,
                };
                parts.push((from, to, runner));
            });
        let instance = (span.tid, span.from);
        for (from, to, runner) in parts {
            let mut left = to.saturating_sub(from);
            for (name, ticks) in self.recent.interrupts(span.cpu, from, to) {
                let ticks = ticks.min(left);
                left -= ticks;
                let by = Runner::Handler(name);
                let cause = Cause::Runnable {
                    who: None,
                    by,
                    woken,
                };
                self.tree.add(cause, instance, from, ticks);
            }
            if left == 0 {
                continue;
            }
            let by = match runner {
                Some(0) => Runner::Idle,
                Some(tid) => Runner::Thread(self.name(tid, schedule)),
                None => {
                    let cause = Cause::Unknown {
                        who: None,
                        is_blocked: false,
                        place: None,
                        why: Reason::NoActivity,
                    };
                    self.tree.add(cause, instance, from, left);
                    continue;
                }
            };
            let cause = Cause::Runnable {
                who: None,
                by,
                woken,
            };
            let node = self.tree.add(cause, instance, from, left);
            runner.into_iter().for_each(|tid| node.thread(tid));
        }
    }

    /// Adds a wait without a known cause.
    fn unknown(&mut self, span: &Span, why: Reason) {
        let is_blocked = matches!(span.state, Activity::Blocked(_));
        let place = self.places.of(span.tid).filter(|_| is_blocked);
        self.unknown_at(span, place, why);
    }

    fn unknown_at(&mut self, span: &Span, place: Option<u32>, why: Reason) {
        let cause = Cause::Unknown {
            who: None,
            is_blocked: matches!(span.state, Activity::Blocked(_)),
            place,
            why,
        };
        let instance = (span.tid, span.from);
        self.tree.add(cause, instance, span.from, span.ticks());
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
            Activity::Blocked(_) if !self.has_waking => self.unknown(span, Reason::NoWakeups),
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
        let others = self.others.iter().map(|(key, _)| *key);
        let events = self.handlers.events().chain(self.places.events());
        events.chain(requests).chain(others).collect()
    }

    fn cost(&self) -> u32 {
        2
    }

    fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) {
        self.begin.get_or_insert(now.time);
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
        match self.others[which].1 {
            Other::Switch => {
                if let Some(switch) = &now.switch {
                    self.places.leave(event, switch, now);
                }
            }
            Other::Waking(fields) => {
                let Some(task) = fields.read(event) else {
                    return;
                };
                let waker = self.waker(event, now);
                self.woken(task.tid, &waker, now);
                if now.schedule.runs(task.tid) {
                    self.early.insert(task.tid, waker);
                }
            }
            Other::Woken(fields) => {
                let Some(task) = fields.read(event) else {
                    return;
                };
                let waker = self.early.remove(&task.tid).unwrap_or(Woken {
                    waker: Waker::Unknown,
                    done: None,
                    stack: None,
                });
                self.woken(task.tid, &waker, now);
            }
            Other::Fork(fields) => {
                if let Some(fork) = fields.read(event) {
                    let (tid, parent) = (fork.child.0, fork.parent.0);
                    self.history.born(tid, now.time, parent);
                    self.seen.insert((tid, now.schedule.life(tid)));
                }
            }
        }
    }

    fn switch(&mut self, _switch: &Switch<'_>, now: &Moment<'_>) {
        self.begin.get_or_insert(now.time);
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
        if let Some(tid) = running.filter(|tid| *tid != 0 && self.is_chosen(*tid, schedule)) {
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
        self.early.clear();
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
