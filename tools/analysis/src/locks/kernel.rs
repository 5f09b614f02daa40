// SPDX-License-Identifier: GPL-2.0

//! Waits for locks of the kernel.
//!
//! A wait lasts from `contention_begin` to `contention_end`. For a mutex, several begins form one wait: the
//! thread spins, sleeps, and spins again after each wake-up.

use super::waiters::{LockId, Wait as Waited, Waiters};
use super::waits::{Waiter, Waits, WaitsFound};
use crate::begun::Begun;
use crate::schedule::Schedule;
use crate::schedule_events::Switch;
use crate::tasks::Life;
use crate::{bits, integer, key, Catalogue, EventKey, Moment};
use ahash::{HashMap, HashMapExt};
use ctf::{Clock, Event, Value};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;

/// `LCB_F_SPIN`
const SPIN: u64 = 1;
/// `LCB_F_MUTEX`
const MUTEX: u64 = 1 << 5;

/// Analysis of the kernel's locks that threads had to wait for.
pub struct KernelLocks {
    clock: Clock,
    begin: Begin,
    end: End,
    open: Begun<u64, Wait>,
    locks: HashMap<Lock, Waits>,
}

/// Field indexes of `contention_begin`.
struct Begin {
    key: EventKey,
    lock_addr: usize,
    flags: usize,
    /// Index of the context with the kernel's call stack.
    stack: Option<usize>,
}

/// Field indexes of `contention_end`.
struct End {
    key: EventKey,
    lock_addr: usize,
    ret: usize,
}

/// Description of a wait, without the lock's address.
#[derive(Clone, Copy, Debug)]
struct Wait {
    flags: u64,
    place: Option<u64>,
    tid: i64,
    /// Life of this id.
    life: Life,
}

/// Key by which waits are summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Lock {
    address: u64,
    flags: u64,
    /// Code address of the wait.
    place: Option<u64>,
}

impl Lock {
    fn new(address: u64, wait: Wait) -> Self {
        Self {
            address,
            flags: wait.flags,
            place: wait.place,
        }
    }
}

/// Row of a kernel lock.
#[derive(Debug, JsonSchema, Serialize)]
pub struct KernelLock {
    /// Address, in hexadecimal.
    pub address: String,
    /// Kind of the lock, named as in `perf lock`.
    pub kind: &'static str,
    /// First address of the waiter's call stack, in hexadecimal; `None` if the stack was not recorded.
    pub place: Option<String>,
    /// Waits for the lock.
    #[serde(flatten)]
    pub waits: WaitsFound,
}

impl KernelLocks {
    /// Creates the analysis for a trace with these events.
    pub fn new(catalogue: &Catalogue<'_>) -> Option<Self> {
        let begin = catalogue.event("contention_begin")?;
        let end = catalogue.event("contention_end")?;
        let class = catalogue.class(begin)?;
        let locks = Self {
            clock: catalogue.metadata().clock,
            begin: Begin {
                key: key(begin),
                lock_addr: begin.field("lock_addr")?,
                flags: begin.field("flags")?,
                stack: class.context("callstack_kernel"),
            },
            end: End {
                key: key(end),
                lock_addr: end.field("lock_addr")?,
                ret: end.field("ret")?,
            },
            open: Begun::default(),
            locks: HashMap::new(),
        };
        let knows = catalogue.knows_thread(begin) && catalogue.knows_thread(end);
        knows.then_some(locks)
    }

    /// Returns the events that the waits are read from. `event` identifies each by its index in this list.
    pub fn events(&self) -> [EventKey; 2] {
        [self.begin.key, self.end.key]
    }

    /// Processes an event.
    pub fn event(
        &mut self,
        which: usize,
        event: &Event<'_>,
        now: &Moment<'_>,
        waiters: &mut Waiters,
    ) {
        if which == 0 {
            self.begin(event, now);
        } else {
            self.end(event, now, waiters);
        }
    }

    fn begin(&mut self, event: &Event<'_>, now: &Moment<'_>) -> Option<()> {
        let Begin {
            lock_addr,
            flags,
            stack,
            ..
        } = self.begin;
        let address = bits(event.value(lock_addr))?;
        let flags = bits(event.value(flags))?;
        let place = stack.and_then(|stack| match event.context(stack)? {
            Value::Integers(mut addresses) => bits(addresses.next()),
            _ => None,
        });
        let doer = now.doer()?;
        let tid = now.tid()?;
        let wait = |flags| Wait {
            flags,
            place,
            tid,
            life: now.schedule.life(tid),
        };
        if flags & MUTEX == 0 {
            self.open.begin(doer, address, wait(flags), now);
        } else if !self.open.has(doer, &address) {
            // Spinning and sleeping do not make two kinds of lock.
            self.open.begin(doer, address, wait(flags & !SPIN), now);
        }
        Some(())
    }

    fn end(&mut self, event: &Event<'_>, now: &Moment<'_>, waiters: &mut Waiters) -> Option<()> {
        let End { lock_addr, ret, .. } = self.end;
        let address = bits(event.value(lock_addr))?;
        let failed = integer(event.value(ret))? != 0;
        let ended = self.open.end(now.doer()?, &address, now)?;
        let lock = Lock::new(address, ended.what);
        let took = self.clock.nanoseconds(ended.ticks);
        let waiter = Waiter::new(now.tid()?, now.comm());
        let waits = self.locks.entry(lock).or_insert_with(Waits::new);
        waits.add(took, ended.since, failed, waiter);
        let waited = Waited {
            tid: now.tid()?,
            since: ended.since,
            failed,
        };
        let id = LockId::Kernel(address, kind(ended.what.flags));
        waiters.add(id, waited, now);
        Some(())
    }

    /// Handles a switch of a CPU.
    pub fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) {
        self.open.switch(switch, now);
    }

    /// Handles a loss: events of a CPU may be missing from now on.
    pub fn lost(&mut self, schedule: &Schedule) {
        self.open.lost(schedule);
    }

    /// Returns the locks, those with the longest total wait first.
    pub fn found(mut self, waiters: &mut Waiters) -> Vec<KernelLock> {
        for (address, wait) in self.open.open() {
            let id = LockId::Kernel(*address, kind(wait.flags));
            waiters.add_unfinished(id, Waiter::new(wait.tid, None), wait.life);
            let lock = Lock::new(*address, *wait);
            let waits = self.locks.entry(lock).or_insert_with(Waits::new);
            waits.add_unfinished();
        }
        let clock = self.clock;
        let locks = self.locks.into_iter();
        let mut locks: Vec<_> = locks
            .map(|(lock, waits)| (lock, waits.found(clock)))
            .collect();
        locks.sort_by_key(|(lock, waits)| (Reverse(waits.durations.total_ns()), *lock));
        let locks = locks.into_iter().map(|(lock, waits)| KernelLock {
            address: hex(lock.address),
            kind: kind(lock.flags),
            place: lock.place.map(hex),
            waits,
        });
        locks.collect()
    }
}

/// Returns a kernel address as text.
pub fn hex(address: u64) -> String {
    format!("{address:#018x}")
}

/// Returns the name of a lock with these flags (`LCB_F_*`).
pub fn kind(flags: u64) -> &'static str {
    match flags {
        0x00 => "semaphore",
        0x01 => "spinlock",
        0x03 => "rwlock:R",
        0x05 => "rwlock:W",
        0x02 => "rwsem:R",
        0x04 => "rwsem:W",
        0x08 => "rt-mutex",
        0x0a => "rwlock-rt:R",
        0x0c => "rwlock-rt:W",
        0x12 => "pcpu-sem:R",
        0x14 => "pcpu-sem:W",
        MUTEX => "mutex",
        _ => "unknown",
    }
}
