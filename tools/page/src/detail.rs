// SPDX-License-Identifier: GPL-2.0

//! A part of a trace with every slice and event, for a page whose timeline had to merge them.
//!
//! The part is read only from its packets. If a thread does one thing for longer than the part, the part has no
//! slice of it. The overview has this slice, because only short slices are merged.

use super::data::{Data, Numbers};
use super::packets::Packets;
use super::stacks::Stacks;
use super::timeline::Timeline;
use analysis::engine::Engine;
use analysis::loss::Account;
use analysis::{Catalogue, SendAnalysis};
use ctf::{Clock, Item};
use serde_json::{json, Map, Value as Json};
use std::collections::HashMap;
use std::hash::Hash;
use store::Trace;

/// Maximum number of slices, and of marks, in a part.
const LIMIT: usize = 500_000;

/// Reads parts of a trace.
#[derive(Debug)]
pub struct Details<'a> {
    trace: &'a Trace,
    overview: &'a Timeline,
    packets: Packets,
    /// By thread id: the time at which each thread with this id was first seen, and its row.
    rows: HashMap<i64, Vec<(u64, Option<u32>)>>,
    count: u32,
    clock: Clock,
    begin: u64,
}

impl<'a> Details<'a> {
    /// For a trace that begins at this time, with `overview` as its whole timeline.
    pub fn new(trace: &'a Trace, overview: &'a Timeline, begin: u64) -> system::Result<Self> {
        let sorted = overview.threads.sorted();
        let mut rows: HashMap<_, Vec<_>> = HashMap::new();
        for (place, thread) in (0..).zip(overview.threads.all()) {
            let row = (thread.since, sorted.number(place));
            rows.entry(thread.tid).or_default().push(row);
        }
        rows.values_mut().for_each(|rows| rows.sort_unstable());
        Ok(Self {
            trace,
            overview,
            packets: Packets::of(trace)?,
            rows,
            count: sorted.threads.len() as u32,
            clock: trace.metadata.clock,
            begin,
        })
    }

    /// Returns the part between two times, in nanoseconds from the begin of the trace. None if the part is too
    /// large.
    pub fn read(&self, from_ns: u64, to_ns: u64) -> anyhow::Result<Option<String>> {
        let (from, to) = (self.ticks(from_ns), self.ticks(to_ns.saturating_add(1)));
        let Some((mut merge, until)) = self.packets.read(self.trace, from, to)? else {
            return Ok(None);
        };
        let catalogue = Catalogue::new(&self.trace.metadata);
        let mut timeline = Timeline::bounded(&catalogue, Stacks::default(), LIMIT);
        let analyses: Vec<SendAnalysis<'_>> = vec![timeline.gather()];
        let mut engine = Engine::new(&catalogue, Account::default(), analyses);
        while let Some((stream, item)) = merge.next_item()? {
            // The end of the part is not the end of the trace.
            if !matches!(item, Item::End { .. }) {
                engine.item(stream, &item);
            }
        }
        drop(engine.end(until));
        let numbers = self.numbers(&timeline);
        let data = Data::new(
            &timeline,
            &numbers,
            self.clock,
            self.begin,
            Some((from, to)),
        );
        let packed = data.columns()?.into_iter();
        let packed: Map<_, _> = packed
            .map(|(name, text)| (name.to_owned(), text.into()))
            .collect();
        let ns = |ticks| self.clock.nanoseconds(ticks);
        let part = json!({
            "from_ns": from_ns,
            "to_ns": to_ns,
            "lanes": data.lanes(),
            "marks": data.marks(),
            "slice_resolution_ns": ns(timeline.lanes.resolution()),
            "mark_resolution_ns": ns(timeline.marks.resolution()),
            "columns": Json::Object(packed),
        });
        Ok(Some(part.to_string()))
    }

    fn ticks(&self, ns: u64) -> u64 {
        let begin = self.clock.since_epoch(self.begin);
        self.clock.value(begin.saturating_add(ns.into()))
    }

    /// Maps the places of a part to the numbers of the overview.
    fn numbers(&self, part: &Timeline) -> Numbers {
        let overview = self.overview;
        let thread = |thread: &super::threads::Thread| {
            let rows = self.rows.get(&thread.tid)?;
            let next = rows.partition_point(|(since, _)| *since <= thread.since);
            rows.get(next.saturating_sub(1))?.1
        };
        Numbers {
            threads: part.threads.all().iter().map(thread).collect(),
            rows: self.count,
            events: places(&part.events, &overview.events),
            calls: places(part.calls.names(), overview.calls.names()),
            interrupts: places(&part.interrupts, &overview.interrupts),
        }
    }
}

/// Returns the places of `some` in `all`. The overview has read every event that a part reads.
fn places<T: Eq + Hash>(some: &[T], all: &[T]) -> Vec<u32> {
    let places: HashMap<_, _> = all.iter().zip(0..).collect();
    let place = |thing| places.get(thing).copied().unwrap_or_default();
    some.iter().map(place).collect()
}
