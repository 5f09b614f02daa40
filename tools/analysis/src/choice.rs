// SPDX-License-Identifier: GPL-2.0

//! Choice of a part of a trace: a range of time, and tasks.

use super::loss::Loss;
use super::schedule::{Schedule, Span};
use super::schedule_events::Switch;
use super::whose::Task;
use super::EventKey;
use ctf::Clock;
use rtrace_input::glob;
use std::collections::HashSet;
use terminal::date::PointInTime;

/// Part of a trace that the user chose. The default is the whole trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Begin of the range. Earlier events do not count.
    pub from: Option<PointInTime>,
    /// End of the range. Later events do not count.
    pub to: Option<PointInTime>,
    /// The processes; all, if empty.
    pub pids: Vec<u32>,
    /// Patterns of the names of threads; all, if empty.
    pub comms: Vec<String>,
    /// The events that the analyses receive; all, if `None`.
    pub events: Option<HashSet<EventKey>>,
}

impl Part {
    /// Returns whether the choice is the whole trace.
    pub fn is_all(&self) -> bool {
        self.from.is_none() && self.to.is_none() && !self.has_tasks() && self.events.is_none()
    }

    /// Returns whether only some tasks are chosen.
    pub fn has_tasks(&self) -> bool {
        !self.pids.is_empty() || !self.comms.is_empty()
    }

    /// Returns the range in clock ticks, for a trace that begins at `begin`.
    pub fn range(&self, clock: &Clock, begin: u64) -> (u64, u64) {
        let ticks = |time: PointInTime| {
            let after = time.after_begin(clock.nanoseconds(begin), clock.since_epoch(begin));
            let ticks = after.saturating_mul(clock.frequency.into()) / 1_000_000_000;
            let ticks = i128::from(begin).saturating_add(ticks).max(0);
            u64::try_from(ticks).unwrap_or(u64::MAX)
        };
        let (from, to) = (self.from.map(ticks), self.to.map(ticks));
        (from.unwrap_or(0), to.unwrap_or(u64::MAX))
    }

    /// Returns whether a task is chosen. A thread whose process is not known may be the process's first.
    pub fn is_of(&self, tid: Option<i64>, process: Option<i64>, comm: Option<&[u8]>) -> bool {
        let process = process.or(tid);
        let mut pids = self.pids.iter();
        let mut comms = self.comms.iter();
        (self.pids.is_empty() || pids.any(|pid| process == Some(i64::from(*pid))))
            && (self.comms.is_empty()
                || comm.is_some_and(|comm| comms.any(|pattern| glob::matches(pattern, comm))))
    }
}

/// A choice in a trace whose begin is known.
#[derive(Clone, Debug)]
pub struct Chosen {
    choice: Part,
    /// Begin and end, in clock ticks.
    range: (u64, u64),
}

impl Chosen {
    /// Applies a choice to a trace that begins at `begin`.
    pub fn new(choice: Part, clock: &Clock, begin: u64) -> Self {
        let range = choice.range(clock, begin);
        Self { choice, range }
    }

    /// Returns whether the range has this time.
    pub fn has(&self, time: u64) -> bool {
        self.range.0 <= time && time <= self.range.1
    }

    /// Returns whether a time is after the range.
    pub fn is_over(&self, time: u64) -> bool {
        time > self.range.1
    }

    /// Returns whether a range of time overlaps the chosen one.
    pub fn overlaps(&self, from: u64, to: u64) -> bool {
        from <= self.range.1 && to >= self.range.0
    }

    /// Returns the part of a range of time that is chosen.
    pub fn clip(&self, (from, to): (u64, u64)) -> (u64, u64) {
        let from = from.max(self.range.0);
        (from, to.min(self.range.1).max(from))
    }

    /// Returns whether the events of this kind are chosen.
    pub fn has_key(&self, key: EventKey) -> bool {
        let events = self.choice.events.as_ref();
        events.is_none_or(|events| events.contains(&key))
    }

    /// Returns whether the task of an event is chosen.
    pub fn is_of(&self, task: Option<&Task<'_>>) -> bool {
        let tid = task.map(|task| task.tid);
        let process = task.and_then(|task| task.process);
        let comm = task.and_then(|task| task.comm);
        self.choice.is_of(tid, process, comm)
    }

    /// Returns whether an event of a task at this time is chosen.
    pub fn has_event(
        &self,
        time: u64,
        tid: Option<i64>,
        process: Option<i64>,
        comm: Option<&[u8]>,
    ) -> bool {
        self.has(time) && self.choice.is_of(tid, process, comm)
    }

    /// Returns whether a thread is chosen.
    pub fn is_of_thread(&self, tid: i64, schedule: &Schedule) -> bool {
        let (process, comm) = (schedule.process(tid), schedule.comm(tid));
        self.choice.is_of(Some(tid), process, comm)
    }

    /// Returns whether the analyses receive a switch at this time.
    pub fn has_switch(&self, switch: &Switch<'_>, time: u64, schedule: &Schedule) -> bool {
        let mut tids = [Some(switch.prev_tid), switch.instead_of]
            .into_iter()
            .flatten();
        self.has(time) && tids.any(|tid| self.is_of_thread(tid, schedule))
    }

    /// Returns the chosen part of a loss.
    pub fn part_of_loss(&self, loss: &Loss) -> Option<Loss> {
        let (from, to) = self.clip((loss.from, loss.to));
        let is_part = self.overlaps(loss.from, loss.to);
        is_part.then(|| Loss {
            from,
            to,
            ..loss.clone()
        })
    }

    /// Returns the chosen part of a span.
    pub fn part(&self, mut span: Span, schedule: &Schedule) -> Option<Span> {
        let (from, to) = self.clip((span.from, span.to));
        let is_touched = from == to && span.from < span.to;
        let is_part = self.overlaps(span.from, span.to) && !is_touched;
        if !is_part || !self.is_of_thread(span.tid, schedule) {
            return None;
        }
        span.is_complete &= (from, to) == (span.from, span.to);
        (span.from, span.to) = (from, to);
        Some(span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_chosen_by_process_and_name() {
        let choice = Part {
            pids: vec![7],
            comms: vec!["wor*".to_owned(), "sh".to_owned()],
            ..Part::default()
        };
        for (tid, process, comm, is_chosen) in [
            (Some(8), Some(7), Some("worker"), true),
            (Some(7), None, Some("sh"), true),
            (Some(8), None, Some("sh"), false),
            (Some(8), Some(9), Some("sh"), false),
            (Some(8), Some(7), Some("cat"), false),
            (Some(8), Some(7), None, false),
            (None, None, None, false),
        ] {
            let comm = comm.map(str::as_bytes);
            assert_eq!(
                choice.is_of(tid, process, comm),
                is_chosen,
                "{tid:?} {comm:?}"
            );
        }
        assert!(Part::default().is_of(None, None, None) && Part::default().is_all());
    }
}
