// SPDX-License-Identifier: GPL-2.0

//! The threads that ran on a CPU since the begin of the oldest wait for a CPU that has not ended.
//!
//! A wait asks for the time of each thread from its begin on. So the activities of a thread between two begins of waits
//! are one sum. The memory depends on the number of threads that wait and run, not on the length of a wait.

use super::schedule::{Schedule, Span};
use std::collections::BTreeMap;

/// Least number of entries before activities are added up.
const LEAST: usize = 1 << 10;

/// The threads that ran on a CPU.
#[derive(Debug)]
pub struct Runners {
    /// In order of time. No entry with a sum lies on both sides of the begin of a wait that has not ended.
    entries: Vec<Entry>,
    /// Number of entries from which on activities are added up.
    most: usize,
}

/// An activity of a thread, or the sum of several activities.
#[derive(Clone, Copy, Debug)]
struct Entry {
    tid: i64,
    from: u64,
    to: u64,
    ticks: u64,
}

impl Default for Runners {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            most: LEAST,
        }
    }
}

impl Runners {
    /// Adds an activity of the CPU. It ended with the last event of the schedule.
    pub fn add(&mut self, span: &Span, schedule: &Schedule) {
        if self.entries.len() >= self.most {
            self.sum(schedule.waits().collect());
            self.most = LEAST.max(2 * self.entries.len());
        }
        self.entries.push(Entry {
            tid: span.tid,
            from: span.from,
            to: span.to,
            ticks: span.ticks(),
        });
    }

    /// Returns the thread that ran longest during a wait, and its time. The wait ended with the last event of the
    /// schedule.
    pub fn longest(&self, wait: &Span) -> Option<(i64, u64)> {
        let mut times: BTreeMap<i64, u64> = BTreeMap::new();
        for entry in self.entries.iter().rev() {
            if entry.to <= wait.from {
                break;
            }
            // An entry that begins before the wait is one activity.
            let ticks = entry.ticks.min(entry.to - wait.from);
            let time = times.entry(entry.tid).or_default();
            *time = time.saturating_add(ticks);
        }
        let longest = times.into_iter().max_by_key(|(_, ticks)| *ticks);
        longest.filter(|(_, ticks)| *ticks > 0)
    }

    /// Adds up the activities between the begins of waits, and forgets those before the first.
    fn sum(&mut self, mut waits: Vec<u64>) {
        waits.sort_unstable();
        let mut sums: BTreeMap<(usize, i64), Entry> = BTreeMap::new();
        let entries = std::mem::take(&mut self.entries);
        for entry in entries {
            let begun = waits.partition_point(|wait| *wait <= entry.from);
            let is_one_side = waits.get(begun).is_none_or(|wait| *wait >= entry.to);
            if !is_one_side {
                self.entries.extend(std::mem::take(&mut sums).into_values());
                self.entries.push(entry);
            } else if begun > 0 {
                let sum = sums
                    .entry((begun, entry.tid))
                    .or_insert(Entry { ticks: 0, ..entry });
                sum.to = entry.to;
                sum.ticks = sum.ticks.saturating_add(entry.ticks);
            }
        }
        self.entries.extend(sums.into_values());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule_events::Activity;

    fn span(tid: i64, from: u64, to: u64) -> Span {
        Span {
            tid,
            life: 0,
            cpu: Some(0),
            state: Activity::Running,
            from,
            to,
            is_complete: true,
        }
    }

    #[test]
    fn sums_answer_as_the_activities_do() {
        let mut runners = Runners::default();
        // Thread 1 runs for 5, thread 2 for 2, thread 3 for 4 ticks in turn.
        let lengths = [5, 2, 4];
        let mut now = 0;
        for step in 0..3000 {
            let length = lengths[step % 3];
            runners.entries.push(Entry {
                tid: step as i64 % 3 + 1,
                from: now,
                to: now + length,
                ticks: length,
            });
            now += length;
        }
        // Begins within an activity, between two, and near the end.
        let begins = [2, 5, 1000, 1100, 10_990, 10_998];
        let answers = |runners: &Runners| begins.map(|from| runners.longest(&span(9, from, now)));
        let expected = answers(&runners);
        assert_eq!(expected[0], Some((1, 5000 - 2)));
        runners.sum(begins.to_vec());
        assert_eq!(answers(&runners), expected);
        assert!(runners.entries.len() < 30, "{}", runners.entries.len());
        // Some waits have ended.
        runners.sum(begins[2..].to_vec());
        assert_eq!(answers(&runners)[2..], expected[2..]);
        runners.sum(Vec::new());
        assert!(runners.entries.is_empty());
    }
}
