// SPDX-License-Identifier: GPL-2.0

//! Time that each thread ran, was runnable and was blocked, and the states in which it left its CPU
//! (`--threads`).

use super::interrupts::{Interrupt, Interrupts};
use super::schedule::{Schedule, Span};
use super::schedule_events::Activity;
use super::schedule_events::{Left, Switch};
use super::tasks::Life;
use super::text::{more, or_dash, or_unknown, percent, table};
use super::{Analysis, Answer, Catalogue, Missing, Moment};
use ahash::{HashMap, HashMapExt};
use ctf::Clock;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use system::printing;
use terminal::{duration, printable};

/// A thread, with its times as `--threads` has them.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Waiter {
    /// Thread id, and its life.
    #[serde(skip)]
    pub id: (i64, Life),
    /// Thread id.
    pub tid: i64,
    /// Process.
    pub pid: Option<i64>,
    /// Last name of the thread.
    pub comm: String,
    /// Time in which the thread ran.
    pub running_ns: u64,
    /// Part of the running time in which the CPU handled interrupts.
    pub interrupted_ns: Option<u64>,
    /// Time in which the thread waited for a CPU.
    pub runnable_ns: u64,
    /// Time in which the thread waited for something else.
    pub blocked_ns: u64,
}

impl Waiter {
    /// Returns the time in which the thread waited, or interrupts ran on its CPU.
    pub fn waiting_ns(&self) -> u64 {
        let interrupted = self.interrupted_ns.unwrap_or(0);
        let waited = self.runnable_ns.saturating_add(self.blocked_ns);
        waited.saturating_add(interrupted)
    }
}

/// The order of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// The longest running first.
    #[default]
    Running,
    /// The longest runnable first: the threads that waited for a CPU.
    Runnable,
    /// The longest blocked first.
    Blocked,
}

/// Analysis of the threads of a trace.
pub struct Threads {
    sort: Sort,
    clock: Clock,
    has_wakeups: bool,
    has_interrupts: bool,
    /// Number of switches before which another switch was not recorded.
    unexpected: u64,
    /// Threads by their id and its life.
    threads: HashMap<(i64, Life), Thread>,
}

/// Times of a thread, in clock ticks.
#[derive(Debug, Default)]
struct Thread {
    comm: Vec<u8>,
    process: Option<i64>,
    parent: Option<i64>,
    running: u64,
    /// Part of the running time in which the CPU handled interrupts.
    interrupted: u64,
    woken: u64,
    sent_off: u64,
    /// Blocked time by the state in which the thread left its CPU.
    blocked: [u64; Left::WAYS],
    /// Number of times that the thread left its CPU, by state.
    left: [u64; Left::WAYS],
}

impl Threads {
    /// Creates the analysis for a trace with these events.
    pub fn new(catalogue: &Catalogue<'_>, sort: Sort) -> Result<Self, Missing> {
        if !catalogue.has_switches() {
            return Err(Missing {
                option: "--threads",
                events: "sched_switch",
                record:
                    "-e sched_switch,sched_waking,sched_wakeup,sched_wakeup_new,sched_process_fork,task_rename".into(),
            });
        }
        let interrupts = Interrupts::new(catalogue);
        Ok(Self {
            sort,
            clock: catalogue.metadata().clock,
            has_wakeups: catalogue.has_wakeups(),
            unexpected: 0,
            has_interrupts: interrupts.has_hard() || interrupts.has_soft(),
            threads: HashMap::new(),
        })
    }
}

impl Threads {
    /// Returns the threads with their times.
    pub fn waiters(self) -> Vec<Waiter> {
        let (clock, has_interrupts) = (self.clock, self.has_interrupts);
        let threads = self.threads.into_iter();
        let rows = threads.map(|(id, thread)| (id, thread.row(id.0, clock, has_interrupts)));
        rows.map(|(id, row)| Waiter {
            id,
            tid: row.tid,
            pid: row.pid,
            comm: row.comm,
            running_ns: row.running_ns,
            interrupted_ns: row.interrupted_ns,
            runnable_ns: row.runnable_ns,
            blocked_ns: row.blocked_ns,
        })
        .collect()
    }
}

impl Analysis for Threads {
    fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) {
        self.unexpected += u64::from(switch.instead_of.is_some());
        if switch.prev_tid == 0 {
            return;
        }
        let life = now.schedule.life(switch.prev_tid);
        let thread = self.threads.entry((switch.prev_tid, life)).or_default();
        thread.left[switch.left.way()] += 1;
        if thread.comm != switch.prev_comm {
            thread.comm = switch.prev_comm.to_vec();
        }
        thread.know(switch.prev_tid, now.schedule);
    }

    fn span(&mut self, span: &Span, schedule: &Schedule) {
        if span.tid == 0 {
            return;
        }
        let thread = self.threads.entry((span.tid, span.life)).or_default();
        // The name of the thread's last switch may be older, as after an exec.
        let is_alive = schedule.life(span.tid) == span.life;
        if let Some(comm) = schedule.comm(span.tid) {
            if thread.comm.is_empty() || is_alive && thread.comm != comm {
                thread.comm = comm.to_vec();
            }
        }
        thread.know(span.tid, schedule);
        let sum = match span.state {
            Activity::Running => &mut thread.running,
            Activity::Runnable { woken: true } => &mut thread.woken,
            Activity::Runnable { woken: false } => &mut thread.sent_off,
            Activity::Blocked(left) => &mut thread.blocked[left.way()],
        };
        *sum = sum.saturating_add(span.ticks());
    }

    fn wants_interrupts(&self) -> bool {
        true
    }

    fn interrupt(&mut self, interrupt: &Interrupt<'_>, schedule: &Schedule) {
        if let Some(tid) = schedule.running(interrupt.cpu).filter(|tid| *tid != 0) {
            let life = schedule.life(tid);
            let thread = self.threads.entry((tid, life)).or_default();
            thread.interrupted = thread.interrupted.saturating_add(interrupt.own_ticks);
        }
    }

    fn answer(self: Box<Self>, _ticks: u64) -> Box<dyn Answer> {
        let clock = self.clock;
        let threads = self.threads.into_iter();
        let mut threads: Vec<_> = threads
            .map(|((tid, _), thread)| thread.row(tid, clock, self.has_interrupts))
            .collect();
        threads.sort_by_key(|row| {
            let first = match self.sort {
                Sort::Running => row.running_ns,
                Sort::Runnable => row.runnable_ns,
                Sort::Blocked => row.blocked_ns,
            };
            let others = (Reverse(row.running_ns), Reverse(row.runnable_ns), row.tid);
            (Reverse(first), others)
        });
        Box::new(ThreadsAnswer {
            wakeups_recorded: self.has_wakeups,
            switches_missing: self.unexpected,
            threads,
        })
    }
}

impl Thread {
    /// Copies the process and the parent from the schedule, if it still knows them.
    fn know(&mut self, tid: i64, schedule: &Schedule) {
        self.process = schedule.process(tid).or(self.process);
        self.parent = schedule.parent(tid).or(self.parent);
    }

    fn row(self, tid: i64, clock: Clock, has_interrupts: bool) -> Row {
        let names = || Left::NAMES.iter().map(|(name, _)| *name);
        let blocked = self.blocked.map(|ticks| clock.nanoseconds(ticks));
        let [running, woken, sent_off] =
            [self.running, self.woken, self.sent_off].map(|ticks| clock.nanoseconds(ticks));
        Row {
            tid,
            pid: self.process,
            ppid: self.parent,
            comm: printing::text(&self.comm).into_owned(),
            running_ns: running,
            interrupted_ns: has_interrupts.then(|| clock.nanoseconds(self.interrupted)),
            runnable_ns: woken.saturating_add(sent_off),
            runnable_woken_ns: woken,
            runnable_sent_off_ns: sent_off,
            blocked_ns: blocked.iter().fold(0, |sum, ns| ns.saturating_add(sum)),
            blocked: names().zip(blocked).filter(|(_, ns)| *ns > 0).collect(),
            left: names()
                .zip(self.left)
                .filter(|(_, times)| *times > 0)
                .collect(),
        }
    }
}

/// Answer to `--threads`.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct ThreadsAnswer {
    /// Whether wake-ups are in the trace. Otherwise the blocked time includes the time from the wake-up
    /// until the thread ran.
    wakeups_recorded: bool,
    /// Number of switches that were evidently not recorded. If it is not 0, times are lower bounds.
    switches_missing: u64,
    /// Rows, in the order of [`Sort`].
    threads: Vec<Row>,
}

/// Row of a thread.
#[derive(Debug, JsonSchema, Serialize)]
struct Row {
    tid: i64,
    pid: Option<i64>,
    /// Parent of the process; 0 if it has no parent.
    ppid: Option<i64>,
    /// Last name of the thread.
    comm: String,
    /// Time in which the thread ran.
    running_ns: u64,
    /// Part of `running_ns` in which the CPU handled interrupts; `None` if they are not in the trace.
    interrupted_ns: Option<u64>,
    /// Time in which the thread was runnable and did not run.
    runnable_ns: u64,
    /// Part of `runnable_ns` that followed a wake-up.
    runnable_woken_ns: u64,
    /// Part of `runnable_ns` that followed a preemption or a yield.
    runnable_sent_off_ns: u64,
    /// Time in which the thread waited for something else.
    blocked_ns: u64,
    /// Parts of `blocked_ns` by the state in which the thread left its CPU.
    blocked: BTreeMap<&'static str, u64>,
    /// Number of times that the thread left its CPU, by state.
    left: BTreeMap<&'static str, u64>,
}

impl Answer for ThreadsAnswer {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn json(&self) -> serde_json::Result<Json> {
        serde_json::to_value(self)
    }

    fn text(&self, out: &mut String, rows: usize) -> fmt::Result {
        if self.threads.is_empty() {
            return writeln!(out, "\nNo CPU switched from one thread to another.");
        }
        let heading = format!(
            "{:>10} {:>10} {:>10} {:>10} {:>7} {:>8} {:>8}  {:<16} left its CPU",
            "running", "in irqs", "runnable", "blocked", "running", "tid", "pid", "thread"
        );
        table(out, &heading, &self.threads, rows, |row| {
            let known = row.running_ns.saturating_add(row.runnable_ns);
            let left = Left::NAMES
                .iter()
                .filter_map(|(name, letter)| Some(format!("{letter} {}", row.left.get(name)?)));
            format!(
                "{:>10} {:>10} {:>10} {:>10} {:>7} {:>8} {:>8}  {:<16} {}",
                duration(row.running_ns),
                or_dash(row.interrupted_ns),
                duration(row.runnable_ns),
                duration(row.blocked_ns),
                percent(row.running_ns, known.saturating_add(row.blocked_ns)),
                row.tid,
                or_unknown(row.pid),
                printable(&row.comm),
                left.collect::<Vec<_>>().join(", ")
            )
        })?;
        more(out, self.threads.len(), rows, "threads")?;
        writeln!(
            out,
            "\nTime in interrupts is part of the time running. How often a thread left its CPU, and in which state: R+ preempted, R it could run on, S \
             and D asleep (D cannot be interrupted), I idle kernel thread, T stopped, t traced, P \
             parked, Z and X ended."
        )?;
        if self.switches_missing > 0 {
            writeln!(
                out,
                "Not every sched_switch was recorded (-p, --only, --filter, --cgroup): the times are lower bounds, except for the threads that -p, --only or --cgroup chose."
            )?;
        }
        if !self.wakeups_recorded {
            writeln!(
                out,
                "Wake-ups of threads are not in the trace: the wait for a CPU is counted as blocked. `rtrace record -e sched_waking` records them."
            )?;
        }
        Ok(())
    }
}
