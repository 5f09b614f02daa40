// SPDX-License-Identifier: GPL-2.0

//! The lanes and marks of a timeline, as the page has them: an index in JSON, and columns of numbers.

use super::columns;
use super::lanes::{Lane, Slice};
use super::marks::Mark;
use super::timeline::Timeline;
use ctf::Clock;
use serde_json::{json, Value as Json};
use std::io;
use std::iter::once;
use std::thread;

/// The columns: numbers of all lanes, then of all marks.
const COLUMNS: [&str; 7] = [
    "slice-pauses",
    "slice-lengths",
    "slice-values",
    "mark-pauses",
    "mark-events",
    "mark-threads",
    "mark-counts",
];

/// Maps the places of a timeline to the numbers that the page uses.
#[derive(Clone, Debug)]
pub struct Numbers {
    /// Row number of a thread by its place. None if the thread has no row.
    pub threads: Vec<Option<u32>>,
    /// Number of rows. Each thread without a row has this number.
    pub rows: u32,
    /// Numbers of events by place.
    pub events: Vec<u32>,
    /// Numbers of calls by place.
    pub calls: Vec<u32>,
    /// Numbers of interrupts by place.
    pub interrupts: Vec<u32>,
}

impl Numbers {
    fn thread(&self, place: u32) -> u32 {
        self.threads[place as usize].unwrap_or(self.rows)
    }
}

/// Lanes and marks of a timeline.
#[derive(Debug)]
pub struct Data<'a> {
    lanes: Vec<(Lane, u32, &'a [Slice])>,
    marks: Vec<(u32, &'a [Mark])>,
    numbers: &'a Numbers,
    clock: Clock,
    begin: u64,
}

impl<'a> Data<'a> {
    /// For a whole timeline, or for its part in a range of clock ticks. `begin` is the begin of the trace.
    pub fn new(
        timeline: &'a Timeline,
        numbers: &'a Numbers,
        clock: Clock,
        begin: u64,
        range: Option<(u64, u64)>,
    ) -> Self {
        let (from, to) = range.unwrap_or((0, u64::MAX));
        let number = |cpu: u32| timeline.cpu_numbers[cpu as usize];
        let lanes = timeline.lanes.sorted().into_iter();
        let lanes = lanes.filter_map(|(lane, slices)| {
            let of = match lane {
                Lane::Tasks(cpu) | Lane::Hard(cpu) | Lane::Soft(cpu) => number(cpu),
                Lane::States(place) | Lane::Calls(place) => numbers.threads[place as usize]?,
            };
            let first = slices.partition_point(|slice| slice.to <= from);
            let end = slices.partition_point(|slice| slice.from <= to);
            let slices = &slices[first..end.max(first)];
            (range.is_none() || !slices.is_empty()).then_some((lane, of, slices))
        });
        let marks = timeline.marks.sorted().into_iter();
        let marks = marks.map(|(cpu, marks)| {
            let first = marks.partition_point(|mark| mark.time < from);
            let end = marks.partition_point(|mark| mark.time <= to);
            (number(cpu), &marks[first..end.max(first)])
        });
        let (mut lanes, mut marks): (Vec<_>, Vec<_>) = (lanes.collect(), marks.collect());
        let kind = |lane: Lane| std::mem::discriminant(&lane);
        for lanes in lanes.chunk_by_mut(|(a, ..), (b, ..)| kind(*a) == kind(*b)) {
            lanes.sort_by_key(|(_, of, _)| *of);
        }
        marks.sort_by_key(|(cpu, _)| *cpu);
        Self {
            lanes,
            marks,
            numbers,
            clock,
            begin,
        }
    }

    /// Returns the lanes, in the order of the columns.
    pub fn lanes(&self) -> Json {
        let lanes = self.lanes.iter();
        let lane = |(lane, of, slices): &(Lane, u32, &[Slice])| {
            let kind = match lane {
                Lane::Tasks(_) => "tasks",
                Lane::Hard(_) => "hard",
                Lane::Soft(_) => "soft",
                Lane::States(_) => "states",
                Lane::Calls(_) => "calls",
            };
            json!({"kind": kind, "of": of, "slices": slices.len()})
        };
        lanes.map(lane).collect()
    }

    /// Returns the CPUs that have marks, in the order of the columns.
    pub fn marks(&self) -> Json {
        let marks = self.marks.iter();
        let marks = marks.map(|(cpu, marks)| json!({"cpu": cpu, "marks": marks.len()}));
        marks.collect()
    }

    /// Returns each column as text, with its name. Several threads pack the columns.
    pub fn columns(&self) -> io::Result<Vec<(&'static str, String)>> {
        let pack = |name: &'static str| Ok((name, columns::packed(self.numbers_of(name))?));
        thread::scope(|scope| {
            let packed = COLUMNS.map(|name| scope.spawn(move || pack(name)));
            let packed = packed.map(|packed| {
                packed
                    .join()
                    .map_err(|_| io::Error::other("a thread panicked"))?
            });
            packed.into_iter().collect()
        })
    }

    fn numbers_of(&self, name: &str) -> Box<dyn Iterator<Item = u64> + '_> {
        let slices = || self.lanes.iter().flat_map(|(_, _, slices)| slices.iter());
        let marks = || self.marks.iter().flat_map(|(_, marks)| marks.iter());
        match name {
            "slice-pauses" => Box::new(self.lanes.iter().flat_map(|(_, _, slices)| {
                let ends = once(0).chain(slices.iter().map(|slice| self.ns(slice.to)));
                let pairs = ends.zip(*slices);
                pairs.map(|(end, slice)| self.ns(slice.from) - end)
            })),
            "slice-lengths" => {
                Box::new(slices().map(|slice| self.ns(slice.to) - self.ns(slice.from)))
            }
            "slice-values" => Box::new(self.lanes.iter().flat_map(move |(lane, _, slices)| {
                let lane = *lane;
                slices.iter().map(move |slice| self.value(lane, slice))
            })),
            "mark-pauses" => Box::new(self.marks.iter().flat_map(|(_, marks)| {
                let before = once(0).chain(marks.iter().map(|mark| self.ns(mark.time)));
                let pairs = before.zip(*marks);
                pairs.map(|(before, mark)| self.ns(mark.time) - before)
            })),
            "mark-events" => {
                let events = &self.numbers.events;
                Box::new(marks().map(|mark| events[mark.event as usize].into()))
            }
            "mark-threads" => Box::new(marks().map(|mark| {
                let number = mark.thread.map(|thread| self.numbers.thread(thread));
                number.map_or(0, |number| u64::from(number) + 1)
            })),
            _ => Box::new(marks().map(|mark| mark.count.into())),
        }
    }

    fn value(&self, lane: Lane, slice: &Slice) -> u64 {
        let Numbers {
            calls, interrupts, ..
        } = self.numbers;
        slice.number(|value| match lane {
            Lane::Tasks(_) => self.numbers.thread(value),
            Lane::Hard(_) | Lane::Soft(_) => interrupts[value as usize],
            Lane::Calls(_) => (calls[(value >> 1) as usize] << 1) | (value & 1),
            Lane::States(_) => value,
        })
    }

    /// Nanoseconds from the begin of the trace.
    fn ns(&self, time: u64) -> u64 {
        self.clock.nanoseconds(time.saturating_sub(self.begin))
    }
}
