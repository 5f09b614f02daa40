// SPDX-License-Identifier: GPL-2.0

//! CPU time of tasks, taken from the schedule. The summary, `--threads` and `--cpu` show the same figures.

use super::schedule::{Schedule, Span};
use super::schedule_events::Activity;
use super::tasks::Life;
use ahash::HashMap;
use ctf::Clock;
use schemars::JsonSchema;
use serde::Serialize;
use system::printing;

/// A task and its CPU time.
#[derive(Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Task {
    /// Thread id.
    pub tid: i64,
    /// Name of the task while it ran.
    pub comm: String,
    /// CPU time on all CPUs.
    pub cpu_time_ns: u64,
}

/// A CPU's time, in clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Time in the idle task.
    pub idle: u64,
    /// Time in all other tasks.
    pub busy: u64,
}

impl Times {
    /// Adds the time in which the CPU ran a task.
    pub fn add(&mut self, ran: &Span) {
        let sum = match ran.tid {
            0 => &mut self.idle,
            _ => &mut self.busy,
        };
        *sum = sum.saturating_add(ran.ticks());
    }

    /// Returns the unknown part of a trace of `ticks`: before the first event of the CPU, and where events
    /// may be missing.
    pub fn unknown(&self, ticks: u64) -> u64 {
        ticks.saturating_sub(self.busy.saturating_add(self.idle))
    }
}

/// Names of a thread, each with its CPU time in ticks.
type Names = Vec<(Vec<u8>, u64)>;

/// Sums of CPU time.
#[derive(Debug, Default)]
pub struct BusyTasks {
    /// CPU time by thread and name.
    ticks: HashMap<(i64, Life), Names>,
    /// Times by CPU number.
    cpus: HashMap<u32, Times>,
}

impl BusyTasks {
    /// Adds a span of a thread.
    pub fn add(&mut self, span: &Span, schedule: &Schedule) {
        let (Activity::Running, Some(cpu)) = (span.state, span.cpu) else {
            return;
        };
        let number = schedule.number(cpu);
        self.cpus.entry(number).or_default().add(span);
        if span.tid == 0 {
            return;
        }
        let comm = schedule.comm(span.tid).unwrap_or_default();
        let names = self.ticks.entry((span.tid, span.life)).or_default();
        match names.iter_mut().rev().find(|(name, _)| name == comm) {
            Some((_, sum)) => *sum = sum.saturating_add(span.ticks()),
            None => names.push((comm.to_vec(), span.ticks())),
        }
    }

    /// Returns the times of a CPU.
    pub fn times(&self, cpu: u32) -> Times {
        self.cpus.get(&cpu).copied().unwrap_or_default()
    }

    /// Returns all tasks except the idle tasks, the busiest first.
    pub fn sorted(&self, clock: Clock) -> Vec<Task> {
        let mut tasks: Vec<_> = self
            .ticks
            .iter()
            .flat_map(|((tid, _), names)| {
                names.iter().map(move |(comm, ticks)| (*tid, comm, *ticks))
            })
            .map(|(tid, comm, ticks)| Task {
                tid,
                comm: printing::text(comm).into_owned(),
                cpu_time_ns: clock.nanoseconds(ticks),
            })
            .collect();
        tasks.sort_by(|a, b| {
            b.cpu_time_ns
                .cmp(&a.cpu_time_ns)
                .then_with(|| (a.tid, &a.comm).cmp(&(b.tid, &b.comm)))
        });
        tasks
    }
}
