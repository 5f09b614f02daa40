// SPDX-License-Identifier: GPL-2.0

//! Wake-ups and begins of threads, as the events of the scheduler report them.

use crate::schedule::Schedule;
use crate::schedule_events::{ForkFields, TaskFields};
use crate::{key, Catalogue, EventKey};
use ctf::{Event, EventLayout};
use std::collections::HashMap;

/// The events, and the wakers `W` of threads that are woken before they have gone to sleep.
pub struct Wakeups<W> {
    events: Vec<(EventKey, Kind)>,
    has_waking: bool,
    early: HashMap<i64, W>,
}

/// An event, with the indexes of its fields.
#[derive(Clone, Copy)]
enum Kind {
    Waking(TaskFields),
    Woken(TaskFields),
    Fork(ForkFields),
}

/// The report of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakeup {
    /// The running thread or handler is about to wake this thread.
    Waking(i64),
    /// This thread was woken.
    Woken(i64),
    /// A thread was made by another one.
    Born {
        /// The new thread.
        tid: i64,
        /// The thread that made it.
        parent: i64,
    },
}

impl<W> Wakeups<W> {
    /// The events of a trace.
    pub fn new(catalogue: &Catalogue<'_>) -> Self {
        let event = |name, kind: fn(&EventLayout) -> Option<Kind>| {
            let layout = catalogue.event(name)?;
            Some((key(layout), kind(layout)?))
        };
        let waking = event("sched_waking", |layout| {
            TaskFields::of(layout).map(Kind::Waking)
        });
        let woken = |layout: &EventLayout| TaskFields::of(layout).map(Kind::Woken);
        let has_waking = waking.is_some();
        let events = [
            waking,
            event("sched_wakeup", woken),
            event("sched_wakeup_new", woken),
            event("sched_process_fork", |layout| {
                ForkFields::of(layout).map(Kind::Fork)
            }),
        ];
        Self {
            events: events.into_iter().flatten().collect(),
            has_waking,
            early: HashMap::new(),
        }
    }

    /// Whether the trace says who wakes threads.
    pub fn has_waking(&self) -> bool {
        self.has_waking
    }

    /// The events.
    pub fn events(&self) -> impl Iterator<Item = EventKey> + '_ {
        self.events.iter().map(|(key, _)| *key)
    }

    /// Reads an event of [`events`](Self::events), by its number there.
    pub fn read(&self, which: usize, event: &Event<'_>) -> Option<Wakeup> {
        Some(match self.events.get(which)?.1 {
            Kind::Waking(fields) => Wakeup::Waking(fields.read(event)?.tid),
            Kind::Woken(fields) => Wakeup::Woken(fields.read(event)?.tid),
            Kind::Fork(fields) => {
                let fork = fields.read(event)?;
                Wakeup::Born {
                    tid: fork.child.0,
                    parent: fork.parent.0,
                }
            }
        })
    }

    /// Keeps the waker of a thread, if the thread has not gone to sleep yet.
    pub fn keep_early(&mut self, tid: i64, waker: W, schedule: &Schedule) {
        if schedule.runs(tid) {
            self.early.insert(tid, waker);
        }
    }

    /// The waker that was kept of a thread that was woken now.
    pub fn early(&mut self, tid: i64) -> Option<W> {
        self.early.remove(&tid)
    }

    /// Forgets the wakers, after a loss.
    pub fn lost(&mut self) {
        self.early.clear();
    }
}
