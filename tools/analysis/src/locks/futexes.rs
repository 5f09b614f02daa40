// SPDX-License-Identifier: GPL-2.0

//! Waits of user space for futexes, by system calls. Waits for several futexes at once (`futex_waitv`) are
//! not included, because that call has its addresses in memory.

use super::waiters::{LockId, Wait, Waiters};
use super::waits::{Waiter, Waits, WaitsFound};
use crate::calls::{Calls, Entry, FollowedCall};
use crate::schedule::Schedule;
use crate::schedule_events::Switch;
use crate::tasks::Life;
use crate::whose::Owner;
use crate::{Catalogue, EventKey, Moment};
use ahash::{HashMap, HashMapExt};
use ctf::{Clock, Event};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use system::printing;

/// Bits of an operation that hold the command, a part of `FUTEX_CMD_MASK`.
const COMMAND: u64 = 0x7f;
/// Commands that wait: `FUTEX_WAIT`, `FUTEX_LOCK_PI`, `FUTEX_WAIT_BITSET`, `FUTEX_WAIT_REQUEUE_PI`,
/// `FUTEX_LOCK_PI2`.
const WAITS: [u64; 5] = [0, 6, 9, 11, 13];

/// Effect of a call on a futex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// The command in the second argument.
    Command,
    Wait,
}

const CALLS: &[FollowedCall<Does>] = &[
    FollowedCall {
        name: "futex",
        does: Does::Command,
        arguments: ["uaddr", "op", ""],
        text: None,
    },
    FollowedCall {
        name: "futex_wait",
        does: Does::Wait,
        arguments: ["uaddr", "", ""],
        text: None,
    },
];

/// Analysis of the futexes that threads waited for.
pub struct Futexes {
    clock: Clock,
    calls: Calls<Does>,
    /// Waits by process and address.
    futexes: HashMap<(Owner, Life, u64), Used>,
}

struct Used {
    waits: Waits,
    comm: Option<Vec<u8>>,
}

/// Row of a futex.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Futex {
    /// The process that waited for it.
    pub pid: Option<i64>,
    /// Last name of the process.
    pub comm: Option<String>,
    /// Address in the process, in hexadecimal.
    pub uaddr: String,
    /// Waits for the futex.
    #[serde(flatten)]
    pub waits: WaitsFound,
}

impl Futexes {
    /// Creates the analysis for a trace with these events.
    pub fn new(catalogue: &Catalogue<'_>) -> Option<Self> {
        Some(Self {
            clock: catalogue.metadata().clock,
            calls: Calls::new(catalogue, CALLS)?,
            futexes: HashMap::new(),
        })
    }

    /// Returns the events that the waits are read from. `event` identifies each by its index in this list.
    pub fn events(&self) -> impl Iterator<Item = EventKey> + '_ {
        self.calls.events()
    }

    /// Processes an event.
    pub fn event(
        &mut self,
        which: usize,
        event: &Event<'_>,
        now: &Moment<'_>,
        waiters: &mut Waiters,
    ) {
        let Some(call) = self.calls.event(which, event, now) else {
            return;
        };
        let Some((entry, uaddr)) = call.entry.as_ref().and_then(waits_for) else {
            return;
        };
        let took = self.clock.nanoseconds(call.ticks);
        let waiter = Waiter::new(entry.tid, now.comm());
        let used = used(&mut self.futexes, entry, uaddr);
        used.waits.add(took, call.since, call.ret < 0, waiter);
        let wait = Wait {
            tid: entry.tid,
            since: call.since,
            failed: call.ret < 0,
        };
        waiters.add(LockId::Futex(entry.owner, entry.life, uaddr), wait, now);
    }

    /// Handles a switch of a CPU.
    pub fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) {
        self.calls.switch(switch, now);
    }

    /// Handles a loss: events of a CPU may be missing from now on.
    pub fn lost(&mut self, schedule: &Schedule) {
        self.calls.lost(schedule);
    }

    /// Returns the futexes, those with the longest total wait first.
    pub fn found(mut self, waiters: &mut Waiters) -> Vec<Futex> {
        for (entry, uaddr) in self.calls.open().filter_map(waits_for) {
            let id = LockId::Futex(entry.owner, entry.life, uaddr);
            let waiter = Waiter::new(entry.tid, entry.comm.as_deref());
            waiters.add_unfinished(id, waiter, entry.tid_life);
            used(&mut self.futexes, entry, uaddr).waits.add_unfinished();
        }
        let clock = self.clock;
        let futexes = self.futexes.into_iter();
        let mut futexes: Vec<_> = futexes
            .map(|(place, used)| (place, used.comm, used.waits.found(clock)))
            .collect();
        futexes.sort_by_key(|(place, _, waits)| (Reverse(waits.durations.total_ns()), *place));
        let futexes = futexes.into_iter();
        let futexes = futexes.map(|((owner, _, uaddr), comm, waits)| Futex {
            pid: owner.pid(),
            comm: comm.map(|comm| printing::text(&comm).into_owned()),
            uaddr: format!("{uaddr:#x}"),
            waits,
        });
        futexes.collect()
    }
}

/// Returns whether an operation of futex(2) waits.
pub fn is_wait(operation: u64) -> bool {
    WAITS.contains(&(operation & COMMAND))
}

/// Returns the futex that a call waits for, if it waits.
fn waits_for(entry: &Entry<Does>) -> Option<(&Entry<Does>, u64)> {
    let [uaddr, operation, _] = entry.arguments;
    let waits = match entry.does {
        Does::Wait => true,
        Does::Command => is_wait(operation?),
    };
    waits.then_some((entry, uaddr?))
}

fn used<'a>(
    futexes: &'a mut HashMap<(Owner, Life, u64), Used>,
    entry: &Entry<Does>,
    uaddr: u64,
) -> &'a mut Used {
    let used = futexes
        .entry((entry.owner, entry.life, uaddr))
        .or_insert_with(|| Used {
            waits: Waits::new(),
            comm: None,
        });
    if entry.comm.is_some() && used.comm != entry.comm {
        used.comm.clone_from(&entry.comm);
    }
    used
}
