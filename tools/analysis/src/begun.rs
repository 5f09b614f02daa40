// SPDX-License-Identifier: GPL-2.0

//! Operations that threads have begun and not ended: system calls, waits for locks.
//!
//! A begin and an end belong together under two conditions. The same thread made both, and no event of the
//! thread in between is missing.

use super::schedule::Schedule;
use super::schedule_events::Switch;
use super::tasks::Serial;
use super::Moment;
use ahash::{HashMap, HashMapExt};
use std::collections::hash_map::Entry;
use std::collections::HashSet;
use std::iter::once;

/// The task that performs an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Doer {
    /// A thread.
    Thread(Serial),
    /// The idle task of the CPU at this index. All idle tasks have the id 0.
    Idle(usize),
}

impl Doer {
    /// Returns the thread `tid`, which runs on the CPU at this index. Returns `None` if the thread is
    /// unknown.
    fn of(tid: i64, cpu: usize, schedule: &Schedule) -> Option<Self> {
        match tid {
            0 => Some(Self::Idle(cpu)),
            _ => schedule.serial(tid).map(Self::Thread),
        }
    }

    /// Returns whether no event of the task on this CPU can be missing at this moment.
    fn is_followed(self, now: &Moment<'_>) -> bool {
        let schedule = now.schedule;
        schedule.is_whole(now.cpu)
            && (schedule.all_whole() || self.runs(schedule, &schedule.runners()))
    }

    /// Returns whether the task is known to run. An event on another CPU cannot concern a running task.
    fn runs(self, schedule: &Schedule, runners: &HashSet<Serial>) -> bool {
        match self {
            Self::Thread(serial) => runners.contains(&serial),
            Self::Idle(cpu) => schedule.is_whole(cpu) && schedule.running(cpu) == Some(0),
        }
    }
}

/// Operations that have begun. Each thread can have one per key; `T` describes an operation.
#[derive(Debug)]
pub struct Begun<K, T> {
    open: HashMap<Doer, Opens<K, T>>,
}

/// Operations of a thread: at least one, which most threads have.
#[derive(Debug)]
struct Opens<K, T> {
    first: Open<K, T>,
    others: Vec<Open<K, T>>,
}

#[derive(Debug)]
struct Open<K, T> {
    key: K,
    since: u64,
    what: T,
}

impl<K, T> Opens<K, T> {
    fn iter(&self) -> impl Iterator<Item = &Open<K, T>> {
        once(&self.first).chain(&self.others)
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Open<K, T>> {
        once(&mut self.first).chain(&mut self.others)
    }

    fn into_iter(self) -> impl Iterator<Item = Open<K, T>> {
        once(self.first).chain(self.others)
    }
}

/// An operation that has ended, with its duration.
#[derive(Debug)]
pub struct Ended<T> {
    /// Description of the operation.
    pub what: T,
    /// Time of the begin, in clock ticks.
    pub since: u64,
    /// Duration in clock ticks.
    pub ticks: u64,
}

impl<K, T> Default for Begun<K, T> {
    fn default() -> Self {
        Self {
            open: HashMap::new(),
        }
    }
}

impl<K: PartialEq, T> Begun<K, T> {
    /// Begins an operation. It replaces the thread's operation with the same key. If the end of an older
    /// operation may still follow, the new one is not begun: returns its description.
    pub fn begin(&mut self, doer: Doer, key: K, what: T, now: &Moment<'_>) -> Option<T> {
        if !doer.is_followed(now) {
            self.take(doer, &key);
            return Some(what);
        }
        let since = now.time;
        let open = Open { key, since, what };
        match self.open.entry(doer) {
            Entry::Vacant(vacant) => {
                vacant.insert(Opens {
                    first: open,
                    others: Vec::new(),
                });
            }
            Entry::Occupied(opens) => {
                let opens = opens.into_mut();
                if let Some(old) = opens.iter_mut().find(|old| old.key == open.key) {
                    *old = open;
                    return None;
                }
                opens.others.push(open);
            }
        }
        None
    }

    /// Returns whether a thread has begun an operation with this key.
    pub fn has(&self, doer: Doer, key: &K) -> bool {
        let open = self.open.get(&doer);
        open.is_some_and(|open| open.iter().any(|open| open.key == *key))
    }

    /// Ends the operation that a thread began under this key. Returns `None` if its beginning is not known.
    pub fn end(&mut self, doer: Doer, key: &K, now: &Moment<'_>) -> Option<Ended<T>> {
        let open = self.take(doer, key)?;
        now.schedule.is_whole(now.cpu).then(|| Ended {
            what: open.what,
            since: open.since,
            ticks: now.time.saturating_sub(open.since),
        })
    }

    /// Forgets the operation that a thread began under this key: its end is missing.
    pub fn cut(&mut self, doer: Doer, key: &K) -> Option<T> {
        self.take(doer, key).map(|open| open.what)
    }

    fn take(&mut self, doer: Doer, key: &K) -> Option<Open<K, T>> {
        let Entry::Occupied(mut opens) = self.open.entry(doer) else {
            return None;
        };
        let Opens { first, others } = opens.get_mut();
        if first.key != *key {
            let place = others.iter().position(|open| open.key == *key)?;
            return Some(others.swap_remove(place));
        }
        Some(match others.pop() {
            Some(other) => std::mem::replace(first, other),
            None => opens.remove().first,
        })
    }

    /// Returns all operations that have not ended.
    pub fn open(&self) -> impl Iterator<Item = (&K, &T)> {
        let open = self.open.values().flat_map(Opens::iter);
        open.map(|open| (&open.key, &open.what))
    }

    /// Returns the operations that have not ended at the end of the trace. [`Self::forget`] has their order.
    pub fn rest(&mut self) -> Vec<T> {
        let doers: Vec<_> = self.open.keys().copied().collect();
        self.forget(doers.into_iter())
    }

    /// Handles a switch of a CPU. Returns the operations that it forgets, because a later end could belong
    /// to another operation.
    pub fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) -> Vec<T> {
        // The thread may continue on a CPU whose events are missing.
        let left = (!now.schedule.all_whole()).then_some(switch.prev_tid);
        let gone = switch.instead_of.into_iter().chain(left);
        self.forget(gone.filter_map(|tid| Doer::of(tid, now.cpu, now.schedule)))
    }

    /// Handles a switch of a CPU. If the thread that left the CPU has ended, returns its operations.
    pub fn ended(&mut self, switch: &Switch<'_>, now: &Moment<'_>) -> Vec<T> {
        let gone = switch.left.is_end().then_some(switch.prev_tid);
        self.forget(
            gone.into_iter()
                .filter_map(|tid| Doer::of(tid, now.cpu, now.schedule)),
        )
    }

    /// Handles a loss: events of a CPU may be missing from now on. Returns the operations that it forgets.
    pub fn lost(&mut self, schedule: &Schedule) -> Vec<T> {
        // A thread that is known to run on a whole CPU does not run on the CPU with the loss.
        let doers = self.open.keys().copied();
        let runners = schedule.runners();
        let gone: Vec<_> = doers
            .filter(|doer| !doer.runs(schedule, &runners))
            .collect();
        self.forget(gone.into_iter())
    }

    /// Removes the operations of these tasks. Returns them in the order of their begin, then of their tasks.
    fn forget(&mut self, doers: impl Iterator<Item = Doer>) -> Vec<T> {
        let gone = doers.filter_map(|doer| Some((doer, self.open.remove(&doer)?)));
        let gone = gone.flat_map(|(doer, open)| open.into_iter().map(move |open| (doer, open)));
        let mut gone: Vec<_> = gone.collect();
        gone.sort_by_key(|(doer, open)| (open.since, *doer));
        gone.into_iter().map(|(_, open)| open.what).collect()
    }
}
