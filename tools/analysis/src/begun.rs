// SPDX-License-Identifier: GPL-2.0

//! What threads have begun and not ended yet: system calls, waits for locks.
//!
//! A begin and an end belong together if the same thread made both, and nothing that it may have done
//! in between is missing.

use super::schedule::Schedule;
use super::schedule_events::Switch;
use super::tasks::Serial;
use super::Moment;
use ahash::{HashMap, HashMapExt};
use std::collections::HashSet;

/// Who does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Doer {
    /// A thread.
    Thread(Serial),
    /// The idle task of the CPU at this place: all of them are called 0.
    Idle(usize),
}

impl Doer {
    /// The thread `tid`, which runs on the CPU at this place; none if nothing is known of it.
    fn of(tid: i64, cpu: usize, schedule: &Schedule) -> Option<Self> {
        match tid {
            0 => Some(Self::Idle(cpu)),
            _ => schedule.serial(tid).map(Self::Thread),
        }
    }

    /// Whether nothing of what it does on this CPU now can be missing.
    pub fn is_followed(self, now: &Moment<'_>) -> bool {
        let schedule = now.schedule;
        schedule.is_whole(now.cpu)
            && (schedule.all_whole() || self.runs(schedule, &schedule.runners()))
    }

    /// Whether it is known to run. Then nothing that happens elsewhere is about it.
    fn runs(self, schedule: &Schedule, runners: &HashSet<Serial>) -> bool {
        match self {
            Self::Thread(serial) => runners.contains(&serial),
            Self::Idle(cpu) => schedule.is_whole(cpu) && schedule.running(cpu) == Some(0),
        }
    }
}

/// What was begun: of each thread what has a key of its own, as `T`.
#[derive(Debug)]
pub struct Begun<K, T> {
    open: HashMap<Doer, Vec<Open<K, T>>>,
}

#[derive(Debug)]
struct Open<K, T> {
    key: K,
    since: u64,
    what: T,
}

/// What has ended, and how long it took.
#[derive(Debug)]
pub struct Ended<T> {
    /// What it is.
    pub what: T,
    /// When it began, in clock ticks.
    pub since: u64,
    /// Clock ticks from then on.
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
    /// Something begins, instead of what the thread had begun under this key. It is forgotten at once
    /// if the end of something older may come.
    pub fn begin(&mut self, doer: Doer, key: K, what: T, now: &Moment<'_>) {
        self.take(doer, &key);
        if doer.is_followed(now) {
            let since = now.time;
            let open = Open { key, since, what };
            self.open.entry(doer).or_default().push(open);
        }
    }

    /// Whether a thread has begun something under this key.
    pub fn has(&self, doer: Doer, key: &K) -> bool {
        let open = self.open.get(&doer);
        open.is_some_and(|open| open.iter().any(|open| open.key == *key))
    }

    /// Ends the operation that a thread began under this key. None if its beginning is not known.
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
        let open = self.open.get_mut(&doer)?;
        let place = open.iter().position(|open| open.key == *key)?;
        let found = open.swap_remove(place);
        if open.is_empty() {
            self.open.remove(&doer);
        }
        Some(found)
    }

    /// All that has not ended.
    pub fn open(&self) -> impl Iterator<Item = (&K, &T)> {
        let open = self.open.values().flatten();
        open.map(|open| (&open.key, &open.what))
    }

    /// The trace is over. Returns what has not ended.
    pub fn rest(&mut self) -> Vec<T> {
        let open = self.open.drain().flat_map(|(_, open)| open);
        open.map(|open| open.what).collect()
    }

    /// A CPU has switched. Returns what is forgotten: its end could be that of another.
    pub fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) -> Vec<T> {
        // It may go on where events are missing.
        let left = (!now.schedule.all_whole()).then_some(switch.prev_tid);
        let gone = switch.instead_of.into_iter().chain(left);
        self.forget(gone.filter_map(|tid| Doer::of(tid, now.cpu, now.schedule)))
    }

    /// A CPU has switched. Returns what the thread that left it had begun, if that has ended.
    pub fn ended(&mut self, switch: &Switch<'_>, now: &Moment<'_>) -> Vec<T> {
        let gone = switch.left.is_end().then_some(switch.prev_tid);
        self.forget(
            gone.into_iter()
                .filter_map(|tid| Doer::of(tid, now.cpu, now.schedule)),
        )
    }

    /// Events may be missing on a CPU from here on. Returns what is forgotten.
    pub fn lost(&mut self, schedule: &Schedule) -> Vec<T> {
        // Who runs elsewhere is not there.
        let doers = self.open.keys().copied();
        let runners = schedule.runners();
        let gone: Vec<_> = doers
            .filter(|doer| !doer.runs(schedule, &runners))
            .collect();
        self.forget(gone.into_iter())
    }

    fn forget(&mut self, doers: impl Iterator<Item = Doer>) -> Vec<T> {
        let gone = doers.filter_map(|doer| self.open.remove(&doer));
        gone.flatten().map(|open| open.what).collect()
    }
}
