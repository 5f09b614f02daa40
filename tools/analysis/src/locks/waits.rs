// SPDX-License-Identifier: GPL-2.0

//! The waits for one lock.

use crate::durations::Durations;
use ctf::Clock;
use serde::Serialize;

/// The waits for one lock.
#[derive(Debug)]
pub struct Waits {
    durations: Durations,
    failed: u64,
    unfinished: u64,
    /// When the longest began, in clock ticks, and whose it was.
    longest: Option<(u64, Waiter)>,
}

/// A thread that waited.
#[derive(Clone, Debug, Serialize)]
pub struct Waiter {
    /// Its id; 0 is an idle task.
    pub tid: i64,
    /// Its name, if that is known.
    pub comm: Option<String>,
}

/// What is known of them in the end.
#[derive(Debug, Serialize)]
pub struct WaitsFound {
    /// How long they took.
    #[serde(flatten)]
    pub durations: Durations,
    /// Those after which the thread did not have the lock.
    pub failed: u64,
    /// Those that had not ended when the trace did.
    pub unfinished: u64,
    /// Who waited longest.
    pub longest: Option<Waiter>,
    /// From when on, since the epoch.
    pub longest_begin_ns: Option<i64>,
}

impl Waits {
    /// None yet.
    pub fn new() -> Self {
        Self {
            durations: Durations::coarse(),
            failed: 0,
            unfinished: 0,
            longest: None,
        }
    }

    /// One has ended. It began at `since`, in clock ticks.
    pub fn add(&mut self, nanoseconds: u64, since: u64, failed: bool, waiter: Waiter) {
        if self.longest.is_none() || nanoseconds > self.durations.max_ns() {
            self.longest = Some((since, waiter));
        }
        self.durations.add(nanoseconds);
        self.failed += u64::from(failed);
    }

    /// One has not.
    pub fn add_unfinished(&mut self) {
        self.unfinished += 1;
    }

    /// What is known of them.
    pub fn found(self, clock: Clock) -> WaitsFound {
        let (since, longest) = self.longest.unzip();
        WaitsFound {
            durations: self.durations,
            failed: self.failed,
            unfinished: self.unfinished,
            longest,
            longest_begin_ns: since.and_then(|since| clock.since_epoch(since).try_into().ok()),
        }
    }
}

impl Waiter {
    /// A thread of this name.
    pub fn new(tid: i64, comm: Option<&[u8]>) -> Self {
        Self {
            tid,
            comm: comm.map(|comm| String::from_utf8_lossy(comm).into_owned()),
        }
    }
}
