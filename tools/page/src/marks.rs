// SPDX-License-Identifier: GPL-2.0

//! Events on the timeline, each at a moment on a CPU.
//!
//! Memory is bounded. If a page would have too many events, near events of the same kind and thread are joined.
//! A joined mark has their number.

use std::collections::HashMap;

/// An event, or several of the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Time of the first event, in clock ticks.
    pub time: u64,
    /// Kind of the events.
    pub event: u32,
    /// Place of the thread among the threads. None for an unknown thread and for the idle task.
    pub thread: Option<u32>,
    /// Number of events.
    pub count: u32,
}

/// The events of all CPUs.
#[derive(Debug)]
pub struct Marks {
    /// Marks by the place of the CPU.
    cpus: Vec<Vec<Mark>>,
    count: usize,
    limit: usize,
    /// Width of a cell of time in clock ticks. Events in the same cell are joined.
    resolution: u64,
}

impl Marks {
    /// Without events; for at most `limit` events.
    pub fn new(limit: usize) -> Self {
        Self {
            cpus: Vec::new(),
            count: 0,
            limit,
            resolution: 0,
        }
    }

    /// Returns the width of a cell of time in clock ticks. Events of a kind and a thread in the same cell are
    /// joined.
    pub fn resolution(&self) -> u64 {
        self.resolution
    }

    /// Adds an event.
    pub fn push(&mut self, cpu: u32, time: u64, event: u32, thread: Option<u32>) {
        let cpu = cpu as usize;
        if self.cpus.len() <= cpu {
            self.cpus.resize_with(cpu + 1, Vec::new);
        }
        self.cpus[cpu].push(Mark {
            time,
            event,
            thread,
            count: 1,
        });
        self.count += 1;
        if self.count > self.limit {
            self.coarsen();
        }
    }

    /// Halves the number of marks.
    fn coarsen(&mut self) {
        while self.count > self.limit / 2 {
            for marks in &mut self.cpus {
                join_near(marks, self.resolution);
            }
            self.count = self.cpus.iter().map(Vec::len).sum();
            if self.count > self.limit / 2 {
                match self.resolution.checked_mul(2) {
                    Some(twice) => self.resolution = twice.max(1),
                    // The limit is too small for the number of kinds, threads and CPUs.
                    None => self.limit = self.limit.max(self.count * 3),
                }
            }
        }
    }

    /// Returns the marks by the place of the CPU.
    pub fn sorted(&self) -> Vec<(u32, &[Mark])> {
        let cpus = (0..).zip(&self.cpus);
        let cpus = cpus.map(|(cpu, marks)| (cpu, marks.as_slice()));
        cpus.filter(|(_, marks)| !marks.is_empty()).collect()
    }
}

/// Joins marks of a kind and a thread that are in the same cell of time.
fn join_near(marks: &mut Vec<Mark>, resolution: u64) {
    let Some(cell_of) = (resolution > 0).then_some(|mark: &Mark| mark.time / resolution) else {
        return;
    };
    // Places of the marks in the current cell, by kind and thread.
    let (mut cell, mut places) = (None, HashMap::new());
    let mut kept = 0;
    for next in 0..marks.len() {
        let mark = marks[next];
        if cell.replace(cell_of(&mark)) != Some(cell_of(&mark)) {
            places.clear();
        }
        let place = *places.entry((mark.event, mark.thread)).or_insert(kept);
        if place == kept {
            marks[kept] = mark;
            kept += 1;
        } else {
            marks[place].count = marks[place].count.saturating_add(mark.count);
        }
    }
    marks.truncate(kept);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(marks: &Marks) -> u64 {
        let cpus = marks.cpus.iter().flatten();
        cpus.map(|mark| u64::from(mark.count)).sum()
    }

    #[test]
    fn few_stay_as_they_are() {
        let mut marks = Marks::new(4);
        for time in [3, 3, 9, 12] {
            marks.push(1, time, 5, None);
        }
        let times: Vec<_> = marks.sorted()[0].1.iter().map(|mark| mark.time).collect();
        assert_eq!((times, marks.resolution()), (vec![3, 3, 9, 12], 0));
    }

    #[test]
    fn many_become_few_and_none_is_forgotten() {
        let mut marks = Marks::new(100);
        for time in 0..50_000 {
            marks.push(
                time as u32 % 2,
                time,
                time as u32 % 3,
                Some(time as u32 % 5),
            );
            assert!(marks.count <= 100);
        }
        assert_eq!(all(&marks), 50_000);
        for (_, marks) in marks.sorted() {
            assert!(marks.windows(2).all(|pair| pair[0].time <= pair[1].time));
        }
    }

    #[test]
    fn all_kinds_stay() {
        let mut marks = Marks::new(10);
        for event in 0..1000 {
            marks.push(0, 0, event, None);
        }
        assert_eq!(marks.sorted()[0].1.len(), 1000);
    }
}
