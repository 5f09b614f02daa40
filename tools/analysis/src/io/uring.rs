// SPDX-License-Identifier: GPL-2.0

//! Figures of the requests of io_uring, by process and operation.

use crate::durations::Durations;
use crate::tasks::Life;
use crate::uring::{Request, RequestFile, Seen};
use crate::whose::Owner;
use ahash::{HashMap, HashMapExt};
use ctf::Clock;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::sync::Arc;
use system::printing;

/// Figures of the requests of a trace.
pub struct UringFigures {
    clock: Clock,
    counted: HashMap<(Owner, Life, Arc<str>), Counted>,
    further: u64,
    unknown: u64,
    overflowed: u64,
}

/// Figures of an operation of a process.
#[derive(Default)]
struct Counted {
    tid: Option<i64>,
    comm: Option<Vec<u8>>,
    submitted: u64,
    failed: u64,
    by_worker: u64,
    fixed: u64,
    took: Durations,
}

/// Requests of io_uring.
#[derive(Debug, JsonSchema, Serialize)]
pub struct UringFound {
    /// Figures by process and operation.
    pub operations: Vec<UringOperation>,
    /// Number of results that are not the last ones of their requests, or that another ring sent. They count nowhere else.
    pub further: u64,
    /// Number of results whose requests are not known: they began before the trace, or events are missing in between,
    /// or the kernel's addresses are hidden from the reader of the trace's buffers.
    pub unknown: u64,
    /// Number of results that did not fit into their rings. Their requests have no known end.
    pub overflowed: u64,
}

/// Figures of an operation of a process.
#[derive(Debug, JsonSchema, Serialize)]
pub struct UringOperation {
    /// Process id.
    pub pid: Option<i64>,
    /// Thread id, if the process is not known.
    pub tid: Option<i64>,
    /// Last name of the process.
    pub comm: Option<String>,
    /// The kernel's name of the operation.
    pub operation: String,
    /// Number of requests that the kernel took.
    pub submitted: u64,
    /// Number of requests with a result.
    pub done: u64,
    /// Number of these whose result is an error.
    pub failed: u64,
    /// Number of requests whose result is not in the trace.
    pub open: u64,
    /// Number of requests that a worker thread of the kernel got.
    pub by_worker: u64,
    /// Number of requests whose file was registered with the ring.
    pub fixed: u64,
    /// Time until the result was in the ring.
    pub took: Durations,
}

impl UringFigures {
    /// Creates the figures of a trace with this clock.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            counted: HashMap::new(),
            further: 0,
            unknown: 0,
            overflowed: 0,
        }
    }

    /// Counts what an event at this time means.
    pub fn add(&mut self, seen: &Seen, time: u64) {
        self.overflowed += u64::from(seen.is_overflow);
        if let Some(request) = &seen.cut {
            self.add_open(request);
        }
        let Some(posted) = &seen.posted else {
            return;
        };
        let clock = self.clock;
        match &posted.request {
            Some(request) => {
                let counted = self.counted(request);
                counted.failed += u64::from(posted.res < 0);
                let ticks = time.saturating_sub(request.since);
                counted.took.add(clock.nanoseconds(ticks));
            }
            None if posted.is_further => self.further += 1,
            None => self.unknown += 1,
        }
    }

    /// Counts a request whose result is not in the trace.
    pub fn add_open(&mut self, request: &Request) {
        self.counted(request);
    }

    /// Counts a request. Returns its row.
    fn counted(&mut self, request: &Request) -> &mut Counted {
        let place = (request.owner, request.life, request.operation.clone());
        let counted = self.counted.entry(place).or_default();
        counted.tid = request.tid;
        if request.process_comm.is_some() && counted.comm != request.process_comm {
            counted.comm.clone_from(&request.process_comm);
        }
        counted.submitted += 1;
        counted.by_worker += u64::from(request.is_by_worker);
        counted.fixed += u64::from(request.file == RequestFile::Fixed);
        counted
    }

    /// Returns the figures, the operations with the longest total time first.
    pub fn found(self) -> UringFound {
        let counted = self.counted.into_iter();
        let mut operations: Vec<_> = counted
            .map(|((owner, _, operation), counted)| UringOperation {
                pid: owner.pid(),
                tid: counted.tid.filter(|_| owner.pid().is_none()),
                comm: counted.comm.map(|comm| printing::text(&comm).into_owned()),
                operation: operation.to_string(),
                submitted: counted.submitted,
                done: counted.took.count(),
                failed: counted.failed,
                open: counted.submitted.saturating_sub(counted.took.count()),
                by_worker: counted.by_worker,
                fixed: counted.fixed,
                took: counted.took,
            })
            .collect();
        operations.sort_by(|a, b| {
            let rank = |of: &UringOperation| Reverse((of.took.total_ns(), of.submitted));
            let name = |of: &UringOperation| (of.pid, of.tid, of.operation.clone());
            rank(a).cmp(&rank(b)).then_with(|| name(a).cmp(&name(b)))
        });
        UringFound {
            operations,
            further: self.further,
            unknown: self.unknown,
            overflowed: self.overflowed,
        }
    }
}
