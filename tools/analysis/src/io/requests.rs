// SPDX-License-Identifier: GPL-2.0

//! Requests to block devices, from the begin of their wait for the device to their end.
//!
//! The address of a request identifies it. ftrace's events, as LTTng records them, do not have it: then device, operation
//! and first sector identify a request, and requests that share all three, such as flushes, end in the order in which
//! they were issued.

use super::request_events::{self, Edge, Operation, Record};
use crate::durations::Durations;
use crate::longest::Longest;
use crate::{Catalogue, EventKey, Moment};
use ahash::{HashMap, HashMapExt};
use ctf::{Clock, Event};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use system::printing;

/// Analysis of the requests of a trace.
pub struct Requests {
    clock: Clock,
    events: Vec<(EventKey, request_events::RequestKind)>,
    /// Figures by device and operation.
    counted: BTreeMap<Queue, Counted>,
    /// Requests that wait to be issued, by first sector.
    inserted: HashMap<Queue, BTreeMap<u64, Inserted>>,
    /// Requests that the device works on, by their identity, the oldest first.
    issued: HashMap<(Queue, Identity), VecDeque<Issued>>,
    longest: Longest<Slow>,
}

/// Device and operation of requests.
pub type Queue = (u32, Operation);

/// Identity of a request in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Identity {
    /// The kernel's address of the request.
    Address(u64),
    /// The first sector that is left.
    Sector(u64),
}

impl Identity {
    /// The request that begins at `sector`.
    fn of(record: &Record<'_>, sector: u64) -> Self {
        record.rq.map_or(Self::Sector(sector), Self::Address)
    }
}

/// The thread that made a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Maker {
    tid: Option<i64>,
    comm: String,
}

#[derive(Clone, Debug)]
struct Inserted {
    since: u64,
    maker: Maker,
}

#[derive(Clone, Debug)]
struct Issued {
    inserted: Option<u64>,
    since: u64,
    /// Number of sectors at the begin, and number of sectors still to be done.
    sectors: u64,
    left: u64,
    first: u64,
    maker: Maker,
}

/// Figures of the requests of one device and operation.
struct Counted {
    requests: u64,
    bytes: u64,
    failed: u64,
    /// Number of requests that the device works on now, and its maximum.
    depth: u64,
    depth_max: u64,
    queued: Durations,
    served: Durations,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Slow {
    queue: Queue,
    sector: u64,
    sectors: u64,
    queued_ns: Option<u64>,
    maker: Maker,
}

/// A request that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The thread that inserted the request, or that issued it without an insert.
    pub tid: Option<i64>,
    /// Name of the thread.
    pub comm: String,
    /// Device and operation.
    pub queue: Queue,
    /// Time of the insert, in clock ticks; `None` if the request was not inserted.
    pub inserted: Option<u64>,
    /// Time of the issue.
    pub issued: u64,
    /// Time of the end.
    pub ended: u64,
}

impl Done {
    /// Returns the device, `major:minor`, and the name of the operation.
    pub fn names(&self) -> (String, &'static str) {
        (request_events::name(self.queue.0), self.queue.1.name())
    }
}

/// Results for requests.
#[derive(Debug, JsonSchema, Serialize)]
pub struct RequestsFound {
    /// Whether the trace records the wait of requests before they are issued.
    pub insert_recorded: bool,
    /// Figures by device and operation.
    pub devices: Vec<Device>,
    /// The longest requests, from insert to end; from issue to end if they were not inserted.
    pub longest: Vec<Request>,
}

/// Figures of the requests of one device and operation.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Device {
    /// Device, `major:minor`.
    pub device: String,
    /// Name of the operation.
    pub operation: &'static str,
    /// Number of requests that ended.
    pub requests: u64,
    /// Number of requests that failed.
    pub failed: u64,
    /// Number of bytes read, written or discarded.
    pub bytes: u64,
    /// Bytes per second, over the whole trace.
    pub bytes_per_second: u64,
    /// Maximum number of requests that the device worked on at once.
    pub depth_max: u64,
    /// Average of that number over the whole trace, without requests whose begin or end is not known.
    pub depth_mean: f64,
    /// Time from insert to issue. A request that is issued at once is not inserted.
    pub queued: Durations,
    /// Time from issue to end.
    pub served: Durations,
}

/// A long request.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Request {
    /// Time from insert, or from issue without an insert, to the end.
    pub total_ns: u64,
    /// Part of that time before the issue; `None` if the request was not inserted.
    pub queued_ns: Option<u64>,
    /// Begin since the epoch.
    pub begin_ns: Option<i64>,
    /// Device, `major:minor`.
    pub device: String,
    /// Name of the operation.
    pub operation: &'static str,
    /// First sector, in units of 512 bytes.
    pub sector: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// The thread that inserted the request, or that issued it without an insert.
    pub tid: Option<i64>,
    /// Name of the thread.
    pub comm: String,
}

impl Requests {
    /// Creates the analysis. Returns `None` if the trace lacks the issue or the end of requests.
    pub fn new(catalogue: &Catalogue<'_>) -> Option<Self> {
        let events = request_events::find(catalogue);
        let has = |edge| events.iter().any(|(_, kind)| kind.edge == edge);
        if !has(Edge::Issue) || !has(Edge::Complete) {
            return None;
        }
        Some(Self {
            clock: catalogue.metadata().clock,
            events,
            counted: BTreeMap::new(),
            inserted: HashMap::new(),
            issued: HashMap::new(),
            longest: Longest::new(),
        })
    }

    /// Returns the events that the requests are read from. `event` identifies each by its index in this
    /// list.
    pub fn events(&self) -> impl Iterator<Item = EventKey> + '_ {
        self.events.iter().map(|(key, _)| *key)
    }

    /// Processes an event. Returns the request that the event completes, if its begin is known.
    pub fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) -> Option<Done> {
        let kind = self.events[which].1;
        let record = kind.read(event)?;
        let queue = (record.device, record.operation);
        // The end of a request is only certain while no event is missing on any CPU.
        let is_whole = now.schedule.all_whole();
        match kind.edge {
            Edge::Insert if is_whole => {
                let inserted = Inserted {
                    since: now.time,
                    maker: maker(&record, now),
                };
                let waiting = self.inserted.entry(queue).or_default();
                waiting.entry(record.sector).or_insert(inserted);
            }
            Edge::Issue if is_whole => {
                let maker = maker(&record, now);
                self.issue(queue, &record, maker, now.time);
            }
            Edge::Insert | Edge::Issue => {}
            Edge::Requeue => {
                if self.take(queue, &record).is_some() {
                    self.counted(queue).depth -= 1;
                }
            }
            Edge::Complete => return self.complete(queue, &record, now.time),
        }
        None
    }

    /// Issues a request. It absorbs all inserted requests within its sectors, which were merged into it.
    fn issue(&mut self, queue: Queue, record: &Record<'_>, maker: Maker, now: u64) {
        let mut first: Option<Inserted> = None;
        if let Some(waiting) = self.inserted.get_mut(&queue) {
            let end = record.sector.saturating_add(record.sectors.max(1));
            let merged: Vec<_> = waiting
                .range(record.sector..end)
                .map(|(sector, _)| *sector)
                .collect();
            for sector in merged {
                let found = waiting.remove(&sector);
                first = [first, found]
                    .into_iter()
                    .flatten()
                    .min_by_key(|inserted| inserted.since);
            }
        }
        let clock = self.clock;
        let counted = self.counted(queue);
        counted.depth += 1;
        counted.depth_max = counted.depth_max.max(counted.depth);
        if let Some(inserted) = &first {
            let ticks = now.saturating_sub(inserted.since);
            counted.queued.add(clock.nanoseconds(ticks));
        }
        let issued = Issued {
            inserted: first.as_ref().map(|inserted| inserted.since),
            since: now,
            sectors: record.sectors,
            left: record.sectors,
            first: record.sector,
            maker: first.map_or(maker, |inserted| inserted.maker),
        };
        let identity = Identity::of(record, record.sector);
        let same = self.issued.entry((queue, identity)).or_default();
        same.push_back(issued);
    }

    /// Completes a request, or its first part.
    fn complete(&mut self, queue: Queue, record: &Record<'_>, now: u64) -> Option<Done> {
        let issued = self.take(queue, record);
        // A write without sectors that was not issued is the last step of a flush.
        if issued.is_none() && record.sectors == 0 && queue.1 == Operation::Write {
            return None;
        }
        let clock = self.clock;
        let counted = self.counted(queue);
        let bytes = record.sectors.saturating_mul(request_events::SECTOR);
        counted.bytes = counted.bytes.saturating_add(bytes);
        let Some(mut issued) = issued else {
            counted.requests += 1;
            counted.failed += u64::from(record.failed);
            return None;
        };
        issued.left = issued.left.saturating_sub(record.sectors);
        if issued.left > 0 && !record.failed {
            let rest = Identity::of(record, record.sector.saturating_add(record.sectors));
            let same = self.issued.entry((queue, rest)).or_default();
            same.push_front(issued);
            return None;
        }
        counted.depth -= 1;
        counted.requests += 1;
        counted.failed += u64::from(record.failed);
        let served = clock.nanoseconds(now.saturating_sub(issued.since));
        counted.served.add(served);
        let begin = issued.inserted.unwrap_or(issued.since);
        let total = clock.nanoseconds(now.saturating_sub(begin));
        let done = Done {
            tid: issued.maker.tid,
            comm: issued.maker.comm.clone(),
            queue,
            inserted: issued.inserted,
            issued: issued.since,
            ended: now,
        };
        self.longest.add(total, begin, || Slow {
            queue,
            sector: issued.first,
            sectors: issued.sectors,
            queued_ns: issued
                .inserted
                .map(|inserted| clock.nanoseconds(issued.since.saturating_sub(inserted))),
            maker: issued.maker,
        });
        Some(done)
    }

    /// Removes and returns the oldest issued request that the record can describe.
    fn take(&mut self, queue: Queue, record: &Record<'_>) -> Option<Issued> {
        let key = (queue, Identity::of(record, record.sector));
        let same = self.issued.get_mut(&key)?;
        let found = same.pop_front();
        if same.is_empty() {
            self.issued.remove(&key);
        }
        found
    }

    fn counted(&mut self, queue: Queue) -> &mut Counted {
        self.counted.entry(queue).or_insert_with(|| Counted {
            requests: 0,
            bytes: 0,
            failed: 0,
            depth: 0,
            depth_max: 0,
            queued: Durations::new(),
            served: Durations::new(),
        })
    }

    /// Handles a loss: events may be missing from now on.
    pub fn lost(&mut self) {
        self.inserted.clear();
        self.issued.clear();
        for counted in self.counted.values_mut() {
            counted.depth = 0;
        }
    }

    /// Returns the results for a trace of `ticks` clock ticks.
    pub fn found(self, ticks: u64) -> RequestsFound {
        let clock = self.clock;
        let duration = clock.nanoseconds(ticks).max(1);
        let devices = self
            .counted
            .into_iter()
            .map(|((device, operation), of)| Device {
                device: request_events::name(device),
                operation: operation.name(),
                requests: of.requests,
                failed: of.failed,
                bytes: of.bytes,
                bytes_per_second: (u128::from(of.bytes) * 1_000_000_000 / u128::from(duration))
                    as u64,
                depth_max: of.depth_max,
                depth_mean: of.served.total_ns() as f64 / duration as f64,
                queued: of.queued,
                served: of.served,
            });
        let longest = self.longest.into_sorted().map(|entry| {
            let Slow { queue, maker, .. } = entry.what;
            Request {
                total_ns: entry.nanoseconds,
                queued_ns: entry.what.queued_ns,
                begin_ns: i64::try_from(clock.since_epoch(entry.since.0)).ok(),
                device: request_events::name(queue.0),
                operation: queue.1.name(),
                sector: entry.what.sector,
                bytes: entry.what.sectors.saturating_mul(request_events::SECTOR),
                tid: maker.tid,
                comm: maker.comm,
            }
        });
        let mut kinds = self.events.iter().map(|(_, kind)| kind.edge);
        RequestsFound {
            insert_recorded: kinds.any(|edge| edge == Edge::Insert),
            devices: devices.collect(),
            longest: longest.collect(),
        }
    }
}

fn maker(record: &Record<'_>, now: &Moment<'_>) -> Maker {
    Maker {
        tid: now.tid(),
        comm: printing::text(record.comm).into_owned(),
    }
}
