// SPDX-License-Identifier: GPL-2.0

//! Causes of waits as a tree: each cause with its instances, and with the causes of its own.

use ahash::HashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Number of the longest instances that are kept of a cause.
const LONGEST: usize = 2;
/// Number of threads that are kept of a cause.
const THREADS: usize = 8;

/// A cause. Numbers stand for names and places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The thread slept until something woke it.
    Blocked {
        /// The thread; `None` for the one that is asked about.
        who: Option<u32>,
        place: Option<u32>,
        by: By,
    },
    /// The thread waited for a CPU.
    Runnable {
        who: Option<u32>,
        by: Runner,
        /// Whether it was woken before; otherwise it was preempted, or it yielded.
        woken: bool,
    },
    /// The thread that ended a sleep for a lock: a cause below that of the lock.
    Until { waker: u32 },
    /// Interrupts ran on the thread's CPU in place of the thread: all, or those of one handler.
    Interrupted { handler: Option<u32> },
    /// Another thread ran, in this system call.
    Ran { who: u32, call: Option<u32> },
    /// The request waited for its device.
    Queued,
    /// The device worked on the request.
    Served,
    /// The cause is not known.
    Unknown {
        who: Option<u32>,
        /// Whether the thread was blocked; otherwise it waited for a CPU.
        is_blocked: bool,
        place: Option<u32>,
        why: Reason,
    },
}

/// The source of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum By {
    Thread(u32),
    Handler(u32),
    /// The thread's own timer, in a call that only waits.
    Timer,
    /// A request to a block device, by its name.
    Request(u32),
    /// The threads that are the causes of the cause.
    Holders,
}

/// The activity of a CPU for which a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Runner {
    Thread(u32),
    Handler(u32),
    Idle,
}

/// The reason for which a cause is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// Events were lost.
    Lost,
    /// The wait does not end in the trace.
    Unfinished,
    /// The trace has no wake-ups.
    NoWakeups,
    /// The event of the wake-up is missing.
    NoWaker,
    /// The activity of the CPU or thread is not known.
    NoActivity,
}

/// An instance of a cause: the thread, and the begin of its wait.
pub type Instance = (i64, u64);

/// Causes, each with its figures.
#[derive(Debug, Default)]
pub struct Tree {
    /// By cause.
    pub nodes: HashMap<Cause, Node>,
}

/// Figures of a cause.
#[derive(Debug, Default)]
pub struct Node {
    /// Number of instances.
    pub times: u64,
    /// Time in clock ticks.
    pub ticks: u64,
    /// Ticks and begin of the longest instances, the longest first.
    longest: Vec<(u64, u64)>,
    /// The last instance, its begin and its ticks so far.
    last: Option<(Instance, u64, u64)>,
    /// The threads that are the cause.
    pub threads: BTreeSet<i64>,
    /// For the queue of a device: number of requests of others that ended meanwhile, by name of their threads.
    pub ahead: BTreeMap<u32, u64>,
    /// Clock ticks by the number of the waker's stack.
    pub stacks: BTreeMap<u32, u64>,
    /// The causes of the cause.
    pub below: Tree,
}

impl Tree {
    /// Adds time to an instance of a cause. Calls for one instance follow each other.
    pub fn add(&mut self, cause: Cause, instance: Instance, from: u64, ticks: u64) -> &mut Node {
        let node = self.nodes.entry(cause).or_default();
        node.ticks = node.ticks.saturating_add(ticks);
        match &mut node.last {
            Some((last, begin, sum)) if *last == instance => {
                *begin = (*begin).min(from);
                *sum = sum.saturating_add(ticks);
            }
            _ => {
                node.settle();
                node.times += 1;
                node.last = Some((instance, from, ticks));
            }
        }
        node
    }
}

impl Node {
    /// Ends the last instance.
    fn settle(&mut self) {
        if let Some((_, begin, ticks)) = self.last.take() {
            let behind = self.longest.partition_point(|(longer, _)| *longer >= ticks);
            self.longest.insert(behind, (ticks, begin));
            self.longest.truncate(LONGEST);
        }
    }

    /// Returns ticks and begin of the longest instances, the longest first.
    pub fn longest(&mut self) -> &[(u64, u64)] {
        self.settle();
        &self.longest
    }

    /// Notes a thread that is the cause.
    pub fn thread(&mut self, tid: i64) {
        if self.threads.len() < THREADS {
            self.threads.insert(tid);
        }
    }
}
