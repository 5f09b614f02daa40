// SPDX-License-Identifier: GPL-2.0

//! The waits for locks, by the thread that waited and by the thread that held the lock: the one that woke it.

use super::waits::Waiter;
use crate::schedule_events::TaskFields;
use crate::tasks::Life;
use crate::whose::Owner;
use crate::{key, Catalogue, EventKey, Moment};
use ahash::{HashMap, HashMapExt};
use ctf::{Clock, Event};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;

/// Waits by thread and holder.
pub struct Waiters {
    clock: Clock,
    waking: Option<(EventKey, TaskFields)>,
    /// Time and waker of the last wake-up of each thread.
    woken: HashMap<i64, (u64, Id)>,
    rows: HashMap<RowKey, Row>,
    /// Last names of the threads.
    names: HashMap<Id, Waiter>,
}

/// A thread.
type Id = (i64, Life);

/// A lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockId {
    /// A futex: a process, and an address in it.
    Futex(Owner, Life, u64),
    /// A lock of the kernel: its address, and the name of its kind.
    Kernel(u64, &'static str),
}

/// The lock, the thread that waited, and the holder, if it is known.
type RowKey = (LockId, Id, Option<Id>);

#[derive(Default)]
struct Row {
    waits: u64,
    failed: u64,
    unfinished: u64,
    total_ns: u64,
    max_ns: u64,
    /// Begin of the longest wait.
    longest: Option<u64>,
}

/// A wait of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// The thread.
    pub tid: i64,
    /// Begin in clock ticks.
    pub since: u64,
    /// Whether the wait ended without the lock.
    pub failed: bool,
}

/// Waits of a thread for a lock that one other thread held.
#[derive(Debug, JsonSchema, Serialize)]
pub struct WaiterFound {
    /// The thread that waited.
    pub waiter: Waiter,
    /// The thread that woke it, which is taken as the holder of the lock; `None` if the wait failed or did not end, or if the
    /// trace does not have the wake-up.
    pub holder: Option<Waiter>,
    /// Kind of the lock: `futex`, or that of a lock of the kernel.
    pub kind: &'static str,
    /// Address of the lock, in hexadecimal.
    pub address: String,
    /// Process of a futex.
    pub pid: Option<i64>,
    /// Number of waits, with those that failed or did not end.
    pub waits: u64,
    /// Number of waits after which the thread did not have the lock.
    pub failed: u64,
    /// Number of waits that had not ended at the end of the trace.
    pub unfinished: u64,
    /// Duration of all waits that ended.
    pub total_ns: u64,
    /// Duration of the longest one.
    pub max_ns: u64,
    /// Begin of the longest one, since the epoch.
    pub max_begin_ns: Option<i64>,
}

impl Waiters {
    /// Creates an empty set for a trace with these events.
    pub fn new(catalogue: &Catalogue<'_>) -> Self {
        let waking = catalogue.event("sched_waking");
        Self {
            clock: catalogue.metadata().clock,
            waking: waking.and_then(|layout| Some((key(layout), TaskFields::of(layout)?))),
            woken: HashMap::new(),
            rows: HashMap::new(),
            names: HashMap::new(),
        }
    }

    /// Whether the trace says which thread wakes another one.
    pub fn has_waking(&self) -> bool {
        self.waking.is_some()
    }

    /// Returns the event of a wake-up.
    pub fn event(&self) -> Option<EventKey> {
        self.waking.map(|(key, _)| key)
    }

    /// Processes a wake-up.
    pub fn waking(&mut self, event: &Event<'_>, now: &Moment<'_>) {
        let task = self.waking.and_then(|(_, fields)| fields.read(event));
        let (Some(task), Some(waker)) = (task, now.tid()) else {
            return;
        };
        let waker = (waker, now.schedule.life(waker));
        self.woken.insert(task.tid, (now.time, waker));
    }

    /// Adds a wait that ends now.
    pub fn add(&mut self, lock: LockId, wait: Wait, now: &Moment<'_>) {
        let waiter = (wait.tid, now.schedule.life(wait.tid));
        let woken = self.woken.get(&wait.tid);
        let woken = woken.filter(|(time, _)| !wait.failed && *time >= wait.since);
        let holder = woken.map(|(_, waker)| *waker);
        self.name(waiter, now.comm());
        if let Some(holder) = holder {
            self.name(holder, now.schedule.comm(holder.0));
        }
        let took = now.time.saturating_sub(wait.since);
        let took = self.clock.nanoseconds(took);
        let row = self.rows.entry((lock, waiter, holder)).or_default();
        row.waits += 1;
        row.failed += u64::from(wait.failed);
        row.total_ns = row.total_ns.saturating_add(took);
        if row.longest.is_none() || took > row.max_ns {
            row.max_ns = took;
            row.longest = Some(wait.since);
        }
    }

    /// Adds a wait that has not ended, of a thread with this name.
    pub fn add_unfinished(&mut self, lock: LockId, waiter: Waiter, life: Life) {
        let id = (waiter.tid, life);
        self.names.entry(id).or_insert(waiter);
        let row = self.rows.entry((lock, id, None)).or_default();
        row.waits += 1;
        row.unfinished += 1;
    }

    /// Keeps the name of a thread.
    fn name(&mut self, id: Id, comm: Option<&[u8]>) {
        let known = self.names.get(&id).and_then(|known| known.comm.as_ref());
        let is_known = known.map(String::as_bytes) == comm;
        if !is_known || !self.names.contains_key(&id) {
            self.names.insert(id, Waiter::new(id.0, comm));
        }
    }

    /// Forgets the wake-ups so far: events may be missing from now on.
    pub fn lost(&mut self) {
        self.woken.clear();
    }

    /// Returns the rows, those with the longest total wait first.
    pub fn found(self) -> Vec<WaiterFound> {
        let mut rows: Vec<_> = self.rows.into_iter().collect();
        rows.sort_by_key(|(key, row)| (Reverse(row.total_ns), Reverse(row.waits), *key));
        let named = |id: Id| {
            let known = self.names.get(&id).cloned();
            known.unwrap_or_else(|| Waiter::new(id.0, None))
        };
        let clock = self.clock;
        let rows = rows.into_iter().map(|((lock, waiter, holder), row)| {
            let (kind, address, pid) = match lock {
                LockId::Futex(owner, _, uaddr) => ("futex", format!("{uaddr:#x}"), owner.pid()),
                LockId::Kernel(address, kind) => (kind, super::kernel::hex(address), None),
            };
            WaiterFound {
                waiter: named(waiter),
                holder: holder.map(named),
                kind,
                address,
                pid,
                waits: row.waits,
                failed: row.failed,
                unfinished: row.unfinished,
                total_ns: row.total_ns,
                max_ns: row.max_ns,
                max_begin_ns: row
                    .longest
                    .and_then(|since| clock.since_epoch(since).try_into().ok()),
            }
        });
        rows.collect()
    }
}
