// SPDX-License-Identifier: GPL-2.0

//! The waits for one lock.

use crate::durations::Durations;
use ctf::Clock;
use schemars::JsonSchema;
use serde::Serialize;
use system::printing;

/// The waits for one lock.
#[derive(Debug)]
pub struct Waits {
    durations: Durations,
    failed: u64,
    unfinished: u64,
    /// Begin of the longest wait, in clock ticks, and its thread.
    longest: Option<(u64, Waiter)>,
}

/// A thread that waited.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Waiter {
    /// Thread id; 0 is an idle task.
    pub tid: i64,
    /// Name of the thread, if it is known.
    pub comm: Option<String>,
}

/// Figures of the waits at the end of the trace.
#[derive(Debug, JsonSchema, Serialize)]
pub struct WaitsFound {
    /// Durations of the waits.
    #[serde(flatten)]
    pub durations: Durations,
    /// Number of waits after which the thread did not have the lock.
    pub failed: u64,
    /// Number of waits that had not ended at the end of the trace.
    pub unfinished: u64,
    /// The thread that waited longest.
    pub longest: Option<Waiter>,
    /// Begin of the longest wait, since the epoch.
    pub longest_begin_ns: Option<i64>,
}

impl Waits {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self {
            durations: Durations::coarse(),
            failed: 0,
            unfinished: 0,
            longest: None,
        }
    }

    /// Adds a wait that has ended. It began at `since`, in clock ticks.
    pub fn add(&mut self, nanoseconds: u64, since: u64, failed: bool, waiter: Waiter) {
        if self.longest.is_none() || nanoseconds > self.durations.max_ns() {
            self.longest = Some((since, waiter));
        }
        self.durations.add(nanoseconds);
        self.failed += u64::from(failed);
    }

    /// Adds a wait that has not ended.
    pub fn add_unfinished(&mut self) {
        self.unfinished += 1;
    }

    /// Returns the figures of the waits.
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
    /// Creates a waiter with this name.
    pub fn new(tid: i64, comm: Option<&[u8]>) -> Self {
        Self {
            tid,
            comm: comm.map(|comm| printing::text(comm).into_owned()),
        }
    }
}
