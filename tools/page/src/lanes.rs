// SPDX-License-Identifier: GPL-2.0

//! Lanes of the timeline's rows. A lane has slices of time.
//!
//! Memory is bounded. If a page would have too many slices, consecutive short slices are joined. A joined slice
//! has the share of each activity.

/// Steps in which the shares of a mixed slice are stored.
const STEPS: f64 = 1000.0;

/// The largest resolution, in clock ticks. Every trace is shorter.
const WHOLE: u64 = 1 << 62;

/// A lane. The page has the lanes in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Threads on the CPU at this place.
    Tasks(u32),
    /// Hard interrupts of the CPU.
    Hard(u32),
    /// Soft interrupts of the CPU.
    Soft(u32),
    /// States of the thread at this place.
    States(u32),
    /// System calls of the thread.
    Calls(u32),
}

impl Lane {
    const KINDS: usize = 5;

    /// Returns the number of the kind, and the place of the CPU or thread.
    fn place(self) -> (usize, usize) {
        match self {
            Self::Tasks(cpu) => (0, cpu as usize),
            Self::Hard(cpu) => (1, cpu as usize),
            Self::Soft(cpu) => (2, cpu as usize),
            Self::States(thread) => (3, thread as usize),
            Self::Calls(thread) => (4, thread as usize),
        }
    }

    /// Returns the lane with this number of the kind.
    fn at(kind: usize, of: u32) -> Self {
        [
            Self::Tasks,
            Self::Hard,
            Self::Soft,
            Self::States,
            Self::Calls,
        ][kind](of)
    }
}

/// Contents of a slice.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Content {
    /// One activity. The meaning of the value depends on the lane.
    One(u32),
    /// Several activities, in clock ticks: busy time (of a thread: running), and time spent waiting for a CPU.
    Mixed { taken: f32, waiting: f32 },
}

/// A part of a lane, in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slice {
    /// Begin of the slice.
    pub from: u64,
    /// End of the slice.
    pub to: u64,
    content: Content,
}

/// Bit of a slice's number that marks a mixed slice.
const MIXED: u64 = 1;

impl Slice {
    /// Returns the number of the slice on the page. For one activity it is `2 * value`; `renumber` maps a value
    /// to its number on the page.
    ///
    /// For a mixed slice, bit 0 is set. Bits 1 to 10 hold the busy time, the bits from 11 on the waiting time,
    /// both in thousandths.
    pub fn number(&self, renumber: impl Fn(u32) -> u32) -> u64 {
        match self.content {
            Content::One(value) => u64::from(renumber(value)) << 1,
            Content::Mixed { taken, waiting } => {
                let ticks = (self.to - self.from).max(1) as f64;
                let part = |sum: f32| (f64::from(sum) * STEPS / ticks).round().min(STEPS) as u64;
                (part(waiting) << 11) | (part(taken) << 1) | MIXED
            }
        }
    }

    /// Returns the busy and the waiting clock ticks.
    fn parts(&self, lane: Lane) -> [f32; 2] {
        let ticks = (self.to - self.from) as f32;
        match (self.content, lane) {
            (Content::Mixed { taken, waiting }, _) => [taken, waiting],
            (Content::One(value), Lane::States(_)) => match Doing::of(value) {
                Doing::Runs => [ticks, 0.0],
                Doing::Waits => [0.0, ticks],
                Doing::Sleeps => [0.0, 0.0],
            },
            (Content::One(_), _) => [ticks, 0.0],
        }
    }

    /// Joins this slice and the next one.
    fn join(&self, next: &Self, lane: Lane) -> Self {
        let (this, other) = (self.parts(lane), next.parts(lane));
        Self {
            from: self.from,
            to: next.to,
            content: Content::Mixed {
                taken: this[0] + other[0],
                waiting: this[1] + other[1],
            },
        }
    }
}

/// Coarse state of a thread, from the value of its slice.
enum Doing {
    Runs,
    Waits,
    Sleeps,
}

impl Doing {
    fn of(value: u32) -> Self {
        match value & 0xf {
            RUNNING => Self::Runs,
            WOKEN | SENT_OFF => Self::Waits,
            _ => Self::Sleeps,
        }
    }
}

/// State of a running thread. A value of [`Lane::States`] has the state in its lowest four bits. From bit 4 on
/// it has the place of the CPU on the page, plus 1, or 0 for none.
pub const RUNNING: u32 = 0;
/// State of a thread that is runnable since its wake-up.
pub const WOKEN: u32 = 1;
/// State of a thread that is runnable since its preemption.
pub const SENT_OFF: u32 = 2;
/// Lowest state of a blocked thread. The way in which the thread left its CPU is added.
pub const BLOCKED: u32 = 3;

/// All lanes.
#[derive(Debug)]
pub struct Lanes {
    /// Slices by kind, and by CPU or thread.
    lanes: [Vec<Vec<Slice>>; Lane::KINDS],
    count: usize,
    limit: usize,
    /// Slices shorter than this number of clock ticks may have been joined.
    resolution: u64,
}

impl Lanes {
    /// Without slices; for at most `limit` slices, or two in each lane if that is more.
    pub fn new(limit: usize) -> Self {
        Self {
            lanes: Default::default(),
            count: 0,
            limit,
            resolution: 0,
        }
    }

    /// Resolution in clock ticks: shorter slices may have been joined.
    pub fn resolution(&self) -> u64 {
        self.resolution
    }

    /// Adds a slice to a lane. Only the part after the last slice of the lane is added.
    pub fn push(&mut self, lane: Lane, from: u64, to: u64, value: u32) {
        let (kind, of) = lane.place();
        let lanes = &mut self.lanes[kind];
        if lanes.len() <= of {
            lanes.resize_with(of + 1, Vec::new);
        }
        let slices = &mut lanes[of];
        let from = slices.last().map_or(from, |last| last.to.max(from));
        if to <= from {
            return;
        }
        let content = Content::One(value);
        slices.push(Slice { from, to, content });
        self.count += 1;
        if self.count > self.limit {
            self.coarsen();
        }
    }

    /// Halves the number of slices.
    fn coarsen(&mut self) {
        while self.count > self.limit / 2 {
            for (kind, lanes) in self.lanes.iter_mut().enumerate() {
                for (of, slices) in (0..).zip(lanes) {
                    join_short(Lane::at(kind, of), slices, self.resolution);
                }
            }
            self.count = self.lanes.iter().flatten().map(Vec::len).sum();
            if self.resolution >= WHOLE {
                // The limit is too small for the number of lanes.
                self.limit = self.limit.max(self.count * 2);
                return;
            }
            if self.count > self.limit / 2 {
                self.resolution = (self.resolution * 2).max(1);
            }
        }
    }

    /// Returns the lanes in the order of the page.
    pub fn sorted(&self) -> Vec<(Lane, &[Slice])> {
        let kinds = self.lanes.iter().enumerate();
        let lanes = kinds.flat_map(|(kind, lanes)| {
            let lanes = (0..).zip(lanes);
            lanes.map(move |(of, slices)| (Lane::at(kind, of), slices.as_slice()))
        });
        lanes.filter(|(_, slices)| !slices.is_empty()).collect()
    }
}

/// Joins slices that together, with the time between them, fit into this length.
fn join_short(lane: Lane, slices: &mut Vec<Slice>, resolution: u64) {
    if slices.is_empty() {
        return;
    }
    let mut kept = 0;
    for next in 1..slices.len() {
        if slices[next].to - slices[kept].from <= resolution {
            slices[kept] = slices[kept].join(&slices[next], lane);
        } else {
            kept += 1;
            slices[kept] = slices[next];
        }
    }
    slices.truncate(kept + 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANE: Lane = Lane::Tasks(0);

    /// Sums up the busy time of a lane's slices.
    fn taken(lanes: &Lanes, lane: Lane) -> f32 {
        let (kind, of) = lane.place();
        let slices = lanes.lanes[kind][of].iter();
        slices.map(|slice| slice.parts(lane)[0]).sum()
    }

    #[test]
    fn few_slices_stay_as_they_are() {
        let mut lanes = Lanes::new(3);
        for (from, to, value) in [(5, 9, 7), (9, 10, 8), (20, 30, 7)] {
            lanes.push(LANE, from, to, value);
        }
        let numbers = lanes.sorted()[0].1.iter();
        let numbers: Vec<_> = numbers.map(|slice| slice.number(|value| value)).collect();
        assert_eq!((numbers, lanes.resolution()), (vec![14, 16, 14], 0));
    }

    #[test]
    fn what_overlaps_is_taken_once() {
        let mut lanes = Lanes::new(9);
        lanes.push(LANE, 5, 9, 1);
        lanes.push(LANE, 0, 9, 2);
        lanes.push(LANE, 0, 12, 3);
        let found = lanes.sorted()[0].1.iter();
        let found: Vec<_> = found.map(|slice| (slice.from, slice.to)).collect();
        assert_eq!(found, [(5, 9), (9, 12)]);
    }

    #[test]
    fn many_slices_become_few_and_no_time_is_lost() {
        let mut lanes = Lanes::new(100);
        for n in 0..100_000 {
            lanes.push(LANE, n * 10, n * 10 + 4, 1);
            assert!(lanes.count <= 100);
        }
        // The slice differs from the short slices around it.
        lanes.push(LANE, 2_000_000, 3_000_000, 9);
        let error = taken(&lanes, LANE) / 1_400_000.0 - 1.0;
        assert!(error.abs() < 1e-4, "{error}");
        let all = lanes.sorted()[0].1;
        assert_eq!(all.last().unwrap().number(|value| value), 18);
        let first = all[0].number(|value| value);
        assert_eq!(
            (first & MIXED, (first >> 1) & 0x3ff, first >> 11),
            (1, 400, 0)
        );
        let resolution = lanes.resolution();
        assert!(all
            .iter()
            .rev()
            .skip(1)
            .all(|slice| slice.to - slice.from <= resolution));
    }

    #[test]
    fn a_thread_that_waits_does_not_run() {
        let lane = Lane::States(3);
        let mut lanes = Lanes::new(9);
        for (from, to, value) in [
            (0, 50, RUNNING | (1 << 4)),
            (50, 70, WOKEN),
            (70, 100, BLOCKED + 1),
            (100, 300, SENT_OFF),
        ] {
            lanes.push(lane, from, to, value);
        }
        let mut slices = std::mem::take(&mut lanes.lanes[3][3]);
        join_short(lane, &mut slices, 100);
        let numbers: Vec<_> = slices
            .iter()
            .map(|slice| slice.number(|value| value))
            .collect();
        assert_eq!(
            numbers,
            [(200 << 11) | (500 << 1) | MIXED, u64::from(SENT_OFF) << 1]
        );
    }

    #[test]
    fn there_may_be_more_lanes_than_slices() {
        let mut lanes = Lanes::new(10);
        for thread in 0..1000 {
            lanes.push(Lane::States(thread), 0, 1 << 40, RUNNING);
        }
        assert_eq!(lanes.sorted().len(), 1000);
    }
}
