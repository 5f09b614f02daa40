// SPDX-License-Identifier: GPL-2.0

//! The waits of the threads, and their causes.

use super::recent::request;
use super::tree::{By, Cause, Reason, Runner};
use super::{places, Why, Woken};
use crate::critical_path::handlers::Waker;
use crate::critical_path::segment::What;
use crate::schedule::{Schedule, Span};
use crate::schedule_events::Activity;
use crate::Moment;

impl Why {
    /// Returns the part of a span in the range that is asked about.
    fn part(&self, span: &Span) -> Option<Span> {
        let (begin, end) = (self.range.begin(), self.range.end());
        let (from, to) = (span.from.max(begin), span.to.min(end));
        // A span of no time has a part, but not one that only touches the range.
        let is_part = from < to || (span.from == span.to && from == to);
        is_part.then_some(Span { from, to, ..*span })
    }

    /// Handles a wake-up that ends no known sleep. If it is the thread's first event, the thread slept since before the
    /// trace.
    pub(super) fn first(&mut self, tid: i64, now: &Moment<'_>) {
        let is_first = self.seen.insert((tid, now.schedule.life(tid)));
        if let (true, Some(begin)) = (is_first, self.begin) {
            let end = now.time.min(self.range.end());
            self.before = self.before.saturating_add(end.saturating_sub(begin));
        }
    }

    /// Adds a sleep that has ended, with its causes.
    pub(super) fn follow(&mut self, slept: &Span, by: &Woken, schedule: &Schedule) {
        let Some(part) = self.part(slept) else {
            return;
        };
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
                    .path(*waker_tid, slept.tid, part.from, slept.to, schedule);
                let parts = self.parts(&path, slept.tid, schedule);
                let mut node = self.tree.add(cause, instance, part.from, part.ticks());
                node.thread(*waker_tid);
                if let Some(waker) = holder {
                    let until = Cause::Until { waker };
                    let below = &mut node.below;
                    node = below.add(until, instance, part.from, part.ticks());
                    node.thread(*waker_tid);
                }
                if let Some(stack) = by.stack {
                    *node.stacks.entry(stack).or_default() += part.ticks();
                }
                for below in parts {
                    below.add(node, part.to);
                }
            }
            (By::Request(_), _, Some(done)) => {
                let ahead = self.recent.ahead(done, &mut self.names);
                let node = self.tree.add(cause, instance, part.from, part.ticks());
                let clip = |time: u64| time.min(part.to).max(part.from);
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
                self.tree.add(cause, instance, part.from, part.ticks());
            }
        }
    }

    /// Adds a wait for a CPU, with the threads and interrupts that ran there.
    pub(super) fn waited(&mut self, span: &Span, woken: bool, schedule: &Schedule) {
        let Some(part) = self.part(span) else {
            return;
        };
        let instance = (span.tid, span.from);
        let span = &part;
        let mut parts = Vec::new();
        self.history
            .waited(span.cpu, span.from, span.to, schedule, |from, to, what| {
                let runner = match what {
                    What::WaitedFor(Some((_, runner))) => runner,
                    _ => None,
                };
                parts.push((from, to, runner));
            });
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
    pub(super) fn unknown(&mut self, span: &Span, why: Reason) {
        let is_blocked = matches!(span.state, Activity::Blocked(_));
        let place = self.places.of(span.tid).filter(|_| is_blocked);
        self.unknown_at(span, place, why);
    }

    pub(super) fn unknown_at(&mut self, span: &Span, place: Option<u32>, why: Reason) {
        let Some(part) = self.part(span) else {
            return;
        };
        let cause = Cause::Unknown {
            who: None,
            is_blocked: matches!(span.state, Activity::Blocked(_)),
            place,
            why,
        };
        let instance = (span.tid, span.from);
        self.tree.add(cause, instance, part.from, part.ticks());
    }
}
