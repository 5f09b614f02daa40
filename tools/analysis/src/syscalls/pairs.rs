// SPDX-License-Identifier: GPL-2.0

//! Entries and exits of system calls, paired.
//!
//! An entry and an exit are one call if the same thread made both, the names match, and no event of the thread in
//! between may be missing.

use super::{edge, Edge, Names, Which};
use crate::begun::{Begun, Doer};
use crate::schedule::Schedule;
use crate::schedule_events::Switch;
use crate::{key, ByEvent, EventKey, Moment};
use ctf::{Event, EventLayout};

/// The system calls of a trace. `T` describes a call that has begun.
#[derive(Debug)]
pub struct Pairs<T> {
    names: Names,
    events: ByEvent<(Which, Edge)>,
    /// The call of each thread.
    open: Begun<(), Open<T>>,
}

/// A call that has begun.
#[derive(Clone, Copy, Debug)]
pub struct Open<T> {
    /// Index of its name.
    pub name: usize,
    /// Time of the begin, in clock ticks.
    pub since: u64,
    /// The description.
    pub what: T,
}

/// Meaning of an event.
#[derive(Debug)]
pub struct Seen<T> {
    /// Index of the call's name.
    pub name: usize,
    /// Whether the call begins; otherwise it ends.
    pub is_entry: bool,
    /// Result of a call that ends. A return from a signal has none.
    pub ret: Option<i64>,
    /// The begin of a call that ends with a result, if it is known.
    pub begun: Option<Open<T>>,
    /// Another call of the thread, whose end is not known.
    pub cut: Option<Open<T>>,
}

impl<T> Pairs<T> {
    /// Finds the calls among these events.
    pub fn new<'a>(layouts: impl Iterator<Item = &'a EventLayout>) -> Self {
        let mut names = Names::default();
        let known = layouts.filter_map(|layout| {
            let (name, edge) = edge(layout)?;
            Some((key(layout), (names.which(name), edge)))
        });
        Self {
            events: known.collect(),
            names,
            open: Begun::default(),
        }
    }

    /// Returns the events that begin or end calls.
    pub fn events(&self) -> Vec<EventKey> {
        self.events.keys().collect()
    }

    /// Returns the names of the calls, by index.
    pub fn names(&self) -> &[String] {
        self.names.all()
    }

    /// Processes an event. Returns `None` if it neither begins nor ends a call. After an entry, the caller describes
    /// the call by [`begin`](Self::begin).
    pub fn event(&mut self, event: &Event<'_>, now: &Moment<'_>) -> Option<Seen<T>> {
        let (which, edge) = *self.events.get(&key(event.layout))?;
        let ret = edge.result(event);
        let before = thread(now).and_then(|thread| self.open.cut(thread, &()));
        let name = self.names.place(which, event);
        let name = name.or(before.as_ref().map(|call| call.name))?;
        let is_known = ret.is_some() && now.schedule.is_whole(now.cpu);
        let (begun, cut) = match before {
            Some(call) if is_known && self.names.is_end_of(name, call.name) => (Some(call), None),
            other => (None, other),
        };
        Some(Seen {
            name,
            is_entry: matches!(edge, Edge::Entry),
            ret,
            begun,
            cut,
        })
    }

    /// Begins a call of the current thread. Returns the description if the end of the call could not be distinguished
    /// from the end of another one.
    pub fn begin(&mut self, name: usize, what: T, now: &Moment<'_>) -> Option<T> {
        let Some(thread) = thread(now) else {
            return Some(what);
        };
        let since = now.time;
        let not_begun = self.open.begin(thread, (), Open { name, since, what }, now);
        not_begun.map(|open| open.what)
    }

    /// Handles a switch of a CPU. Returns the calls whose ends are lost, and the call of a thread that has ended.
    pub fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) -> [Vec<Open<T>>; 2] {
        let lost = self.open.switch(switch, now);
        [lost, self.open.ended(switch, now)]
    }

    /// Handles a loss: events of a CPU may be missing from now on. Returns the calls whose ends are lost.
    pub fn lost(&mut self, schedule: &Schedule) -> Vec<Open<T>> {
        self.open.lost(schedule)
    }

    /// Returns the descriptions of the calls that have not ended.
    pub fn open(&self) -> impl Iterator<Item = &T> {
        self.open.open().map(|(_, open)| &open.what)
    }

    /// Returns the calls that have not ended at the end of the trace.
    pub fn rest(&mut self) -> Vec<Open<T>> {
        self.open.rest()
    }
}

/// Returns the thread that makes a call. The idle task makes no calls.
fn thread(now: &Moment<'_>) -> Option<Doer> {
    now.task?.serial.map(Doer::Thread)
}
