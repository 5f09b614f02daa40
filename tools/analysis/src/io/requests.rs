// SPDX-License-Identifier: GPL-2.0

//! The requests to block devices: from where they wait for the device, to their end.
//!
//! The kernel's events name a request by device, operation and first sector. Requests that are the same
//! by that, as flushes are, end in the order in which they were issued.

use super::request_events::{self, Edge, Operation, Record};
use crate::durations::Durations;
use crate::longest::Longest;
use crate::{Catalogue, EventKey, Moment};
use ahash::{HashMap, HashMapExt};
use ctf::{Clock, Event};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// The requests of a trace.
pub struct Requests {
    clock: Clock,
    events: Vec<(EventKey, request_events::Kind)>,
    /// By device and operation.
    counted: BTreeMap<Queue, Counted>,
    /// By first sector: those that wait to be issued.
    inserted: HashMap<Queue, BTreeMap<u64, Inserted>>,
    /// By first sector: those that the device works on, the oldest first.
    issued: HashMap<(Queue, u64), VecDeque<Issued>>,
    longest: Longest<Slow>,
}

/// What requests are for: the device, and what it is to do.
type Queue = (u32, Operation);

/// Who made a request.
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
    /// Sectors that it began with, and those that are still to do.
    sectors: u64,
    left: u64,
    first: u64,
    maker: Maker,
}

/// What is known of the requests of a device for an operation.
struct Counted {
    requests: u64,
    bytes: u64,
    failed: u64,
    /// How many the device works on now, and worked on at most.
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

/// What was found of requests.
#[derive(Debug, Serialize)]
pub struct RequestsFound {
    /// Whether it is known how long requests waited before they were issued.
    pub insert_recorded: bool,
    /// By device and operation.
    pub devices: Vec<Device>,
    /// The requests that took longest, from insert to end, or from issue where they were not inserted.
    pub longest: Vec<Request>,
}

/// The requests of a device for an operation.
#[derive(Debug, Serialize)]
pub struct Device {
    /// Its numbers, `major:minor`.
    pub device: String,
    /// What it is to do.
    pub operation: &'static str,
    /// Those that ended.
    pub requests: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// What was read, written or discarded.
    pub bytes: u64,
    /// In a second, over the whole trace.
    pub bytes_per_second: u64,
    /// How many the device worked on at once, at most.
    pub depth_max: u64,
    /// And on average, over the whole trace: without those whose begin or end is not known.
    pub depth_mean: f64,
    /// From insert to issue. Requests that are issued at once are not inserted.
    pub queued: Durations,
    /// From issue to end.
    pub served: Durations,
}

/// A request that took long.
#[derive(Debug, Serialize)]
pub struct Request {
    /// From insert or issue to its end.
    pub total_ns: u64,
    /// Of that, until it was issued; none if it was not inserted.
    pub queued_ns: Option<u64>,
    /// When that was, since the epoch.
    pub begin_ns: Option<i64>,
    /// Its device, `major:minor`.
    pub device: String,
    /// What was to do.
    pub operation: &'static str,
    /// Its first sector, of 512 bytes.
    pub sector: u64,
    /// Its length.
    pub bytes: u64,
    /// The thread that inserted it, or issued it if it was not inserted.
    pub tid: Option<i64>,
    /// Its name.
    pub comm: String,
}

impl Requests {
    /// Of a trace that says when requests are issued and when they end.
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

    /// The events that they are made from. Each is known by its place in this list.
    pub fn events(&self) -> impl Iterator<Item = EventKey> + '_ {
        self.events.iter().map(|(key, _)| *key)
    }

    /// One of these events.
    pub fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) {
        let kind = self.events[which].1;
        let Some(record) = kind.read(event) else {
            return;
        };
        let queue = (record.device, record.operation);
        // The end of a request is known only while no event is missing anywhere.
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
                if self.take(queue, record.sector).is_some() {
                    self.counted(queue).depth -= 1;
                }
            }
            Edge::Complete => self.complete(queue, &record, now.time),
        }
    }

    /// A request is issued, with all that were inserted within its sectors: they were merged.
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
        let same = self.issued.entry((queue, record.sector)).or_default();
        same.push_back(issued);
    }

    /// A request, or a first part of it, is done.
    fn complete(&mut self, queue: Queue, record: &Record<'_>, now: u64) {
        let issued = self.take(queue, record.sector);
        // A write of no sector that was not issued is the last step of a flush.
        if issued.is_none() && record.sectors == 0 && queue.1 == Operation::Write {
            return;
        }
        let clock = self.clock;
        let counted = self.counted(queue);
        let bytes = record.sectors.saturating_mul(request_events::SECTOR);
        counted.bytes = counted.bytes.saturating_add(bytes);
        let Some(mut issued) = issued else {
            counted.requests += 1;
            counted.failed += u64::from(record.failed);
            return;
        };
        issued.left = issued.left.saturating_sub(record.sectors);
        if issued.left > 0 && !record.failed {
            let rest = record.sector.saturating_add(record.sectors);
            let same = self.issued.entry((queue, rest)).or_default();
            same.push_front(issued);
            return;
        }
        counted.depth -= 1;
        counted.requests += 1;
        counted.failed += u64::from(record.failed);
        let served = clock.nanoseconds(now.saturating_sub(issued.since));
        counted.served.add(served);
        let begin = issued.inserted.unwrap_or(issued.since);
        let total = clock.nanoseconds(now.saturating_sub(begin));
        self.longest.add(total, begin, || Slow {
            queue,
            sector: issued.first,
            sectors: issued.sectors,
            queued_ns: issued
                .inserted
                .map(|inserted| clock.nanoseconds(issued.since.saturating_sub(inserted))),
            maker: issued.maker,
        });
    }

    /// Takes the oldest of the requests that were issued there.
    fn take(&mut self, queue: Queue, sector: u64) -> Option<Issued> {
        let same = self.issued.get_mut(&(queue, sector))?;
        let found = same.pop_front();
        if same.is_empty() {
            self.issued.remove(&(queue, sector));
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

    /// Events may be missing from here on.
    pub fn lost(&mut self) {
        self.inserted.clear();
        self.issued.clear();
        for counted in self.counted.values_mut() {
            counted.depth = 0;
        }
    }

    /// What was found, in a trace of so many clock ticks.
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
        comm: String::from_utf8_lossy(record.comm).into_owned(),
    }
}
