// SPDX-License-Identifier: GPL-2.0

//! Time from the wake-up of threads until they run (`--latency`).

use super::durations::{accuracy, Durations, HEADINGS, PERCENTILE_ERROR};
use super::longest::Longest;
use super::schedule::{Schedule, Span, State};
use super::tasks::Life;
use super::text::{more, or_unknown, table};
use super::{Analysis, Answer, Catalogue, Missing};
use ahash::{HashMap, HashMapExt};
use ctf::Clock;
use serde::Serialize;
use serde_json::Value as Json;
use std::cmp::Reverse;
use std::fmt::{self, Write};
use std::slice;
use terminal::{date, duration, printable};

/// Number of characters of the histogram's longest bar.
const BAR: u64 = 50;

/// Analysis of the wake-ups of a trace.
pub struct Latency {
    clock: Clock,
    durations: Durations,
    /// Numbers of waits by the number of binary digits of the nanoseconds. The last entry also counts
    /// longer waits.
    powers: [u64; u64::BITS as usize],
    worst: Longest<Wait>,
    threads: HashMap<(i64, Life), Thread>,
}

/// A wait: the CPU on which the thread then ran, and the thread.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Wait {
    cpu: u32,
    tid: i64,
    comm: String,
}

/// Waits of a thread.
#[derive(Clone, Debug, Default, Serialize)]
struct Thread {
    tid: i64,
    comm: String,
    /// Number of times that the thread was woken and then ran.
    wakeups: u64,
    total_ns: u64,
    average_ns: u64,
    max_ns: u64,
}

impl Latency {
    /// Creates the analysis for a trace with these events.
    pub fn new(catalogue: &Catalogue<'_>) -> Result<Self, Missing> {
        let missing = |events| Missing {
            option: "--latency",
            events,
            record: "-e sched_switch,sched_waking,sched_wakeup,sched_wakeup_new",
        };
        if !catalogue.has_switches() {
            return Err(missing("sched_switch"));
        }
        if !catalogue.has_wakeups() {
            return Err(missing("sched_waking or sched_wakeup"));
        }
        Ok(Self {
            clock: catalogue.metadata().clock,
            durations: Durations::new(),
            powers: [0; u64::BITS as usize],
            worst: Longest::new(),
            threads: HashMap::new(),
        })
    }
}

impl Analysis for Latency {
    fn span(&mut self, span: &Span, schedule: &Schedule) {
        let (State::Runnable { woken: true }, true, Some(cpu)) =
            (span.state, span.is_complete, span.cpu)
        else {
            return;
        };
        let latency_ns = self.clock.nanoseconds(span.ticks());
        self.durations.add(latency_ns);
        let digits = (u64::BITS - latency_ns.leading_zeros()) as usize;
        self.powers[digits.min(self.powers.len() - 1)] += 1;
        let comm = schedule.comm(span.tid).unwrap_or_default();
        let thread = self.threads.entry((span.tid, span.life)).or_default();
        if thread.comm.as_bytes() != comm {
            thread.comm = String::from_utf8_lossy(comm).into_owned();
        }
        thread.wakeups += 1;
        thread.total_ns = thread.total_ns.saturating_add(latency_ns);
        thread.max_ns = thread.max_ns.max(latency_ns);
        self.worst.add(latency_ns, span.from, || Wait {
            cpu: schedule.number(cpu),
            tid: span.tid,
            comm: thread.comm.clone(),
        });
    }

    fn answer(self: Box<Self>, _ticks: u64) -> Box<dyn Answer> {
        let clock = self.clock;
        let mut threads: Vec<_> = self.threads.into_iter().collect();
        threads.sort_by_key(|((tid, _), thread)| (Reverse(thread.max_ns), *tid));
        let first = self.powers.iter().position(|count| *count > 0);
        let last = self.powers.iter().rposition(|count| *count > 0);
        let range = first
            .zip(last)
            .map_or(0..0, |(first, last)| first..last + 1);
        Box::new(Found {
            percentile_error: PERCENTILE_ERROR,
            durations: self.durations,
            histogram: range
                .map(|digits| Bar {
                    from_ns: (1 << digits) >> 1,
                    below_ns: 1 << digits,
                    count: self.powers[digits],
                })
                .collect(),
            worst: self
                .worst
                .into_sorted()
                .map(|wait| Worst {
                    latency_ns: wait.nanoseconds,
                    woken_ns: i64::try_from(clock.since_epoch(wait.since.0)).ok(),
                    cpu: wait.what.cpu,
                    tid: wait.what.tid,
                    comm: wait.what.comm,
                })
                .collect(),
            threads: threads
                .into_iter()
                .map(|((tid, _), thread)| Thread {
                    tid,
                    average_ns: thread.total_ns / thread.wakeups.max(1),
                    ..thread
                })
                .collect(),
        })
    }
}

/// Answer to `--latency`.
#[derive(Debug, Serialize)]
struct Found {
    /// Maximum share of its value by which a percentile is too large.
    percentile_error: f64,
    #[serde(flatten)]
    durations: Durations,
    histogram: Vec<Bar>,
    /// The longest waits.
    worst: Vec<Worst>,
    /// All threads that were woken, the one with the longest wait first.
    threads: Vec<Thread>,
}

/// A row of the histogram.
#[derive(Debug, Serialize)]
struct Bar {
    from_ns: u64,
    below_ns: u64,
    count: u64,
}

/// A long wait.
#[derive(Debug, Serialize)]
struct Worst {
    latency_ns: u64,
    /// Time of the wake-up since the epoch.
    woken_ns: Option<i64>,
    /// CPU on which the thread then ran.
    cpu: u32,
    tid: i64,
    comm: String,
}

impl Answer for Found {
    fn name(&self) -> &'static str {
        "latency"
    }

    fn json(&self) -> serde_json::Result<Json> {
        serde_json::to_value(self)
    }

    fn text(&self, out: &mut String, rows: usize) -> fmt::Result {
        let times = &self.durations;
        if times.count() == 0 {
            return writeln!(out, "\nNo thread was woken and then ran.");
        }
        let heading = format!(
            "{:>10}{HEADINGS}  from a wake-up until the thread runs",
            "wake-ups"
        );
        table(out, &heading, slice::from_ref(times), 1, |times| {
            format!("{:>10}{}", times.count(), times.columns())
        })?;
        writeln!(out, "{}", accuracy(self.percentile_error))?;
        writeln!(
            out,
            "Waits of preempted threads are not counted here; --threads counts them."
        )?;
        self.bars(out)?;
        self.longest(out, rows)?;
        self.threads(out, rows)
    }
}

impl Found {
    fn bars(&self, out: &mut String) -> fmt::Result {
        let most = self.histogram.iter().map(|bar| bar.count).max();
        let most = most.unwrap_or(0).max(1);
        let heading = format!(
            "{:>10} {:>10} {:>10}  histogram",
            "from", "below", "wake-ups"
        );
        table(out, &heading, &self.histogram, usize::MAX, |bar| {
            let length = u128::from(bar.count) * u128::from(BAR) / u128::from(most);
            format!(
                "{:>10} {:>10} {:>10}  {}",
                duration(bar.from_ns),
                duration(bar.below_ns),
                bar.count,
                "#".repeat(length as usize)
            )
        })
    }

    fn longest(&self, out: &mut String, rows: usize) -> fmt::Result {
        let first = self.worst.first().and_then(|wait| wait.woken_ns);
        let heading = format!(
            "{:>10}  {:<18} {:>5} {:>8}  the longest waits",
            "waited",
            format!("woken ({})", date::zone_name(first)),
            "CPU",
            "tid"
        );
        table(out, &heading, &self.worst, rows, |wait| {
            format!(
                "{:>10}  {:<18} {:>5} {:>8}  {}",
                duration(wait.latency_ns),
                or_unknown(wait.woken_ns.map(date::time_of_day)),
                wait.cpu,
                wait.tid,
                printable(&wait.comm)
            )
        })
    }

    fn threads(&self, out: &mut String, rows: usize) -> fmt::Result {
        let heading = format!(
            "{:>10} {:>10} {:>10} {:>10} {:>8}  thread",
            "wake-ups", "total", "average", "max", "tid"
        );
        table(out, &heading, &self.threads, rows, |thread| {
            format!(
                "{:>10} {:>10} {:>10} {:>10} {:>8}  {}",
                thread.wakeups,
                duration(thread.total_ns),
                duration(thread.average_ns),
                duration(thread.max_ns),
                thread.tid,
                printable(&thread.comm)
            )
        })?;
        more(out, self.threads.len(), rows, "threads")
    }
}
