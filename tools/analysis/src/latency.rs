// SPDX-License-Identifier: GPL-2.0

//! Time from the wake-up or the preemption of threads until they run, and what their CPU did meanwhile
//! (`--latency`).

use super::durations::{accuracy, Durations, HEADINGS, PERCENTILE_ERROR};
use super::longest::Longest;
use super::runners::Runners;
use super::schedule::{Schedule, Span};
use super::schedule_events::Activity;
use super::tasks::Life;
use super::text::{more, table};
use super::{Analysis, Answer, Catalogue, Missing};
use ahash::{HashMap, HashMapExt};
use ctf::Clock;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use std::cmp::Reverse;
use std::fmt::{self, Write};
use std::slice;
use system::printing;
use terminal::{date, duration, printable};

/// Number of characters of the histogram's longest bar.
const BAR: u64 = 50;

/// Analysis of the waits of a trace for a CPU.
pub struct Latency {
    clock: Clock,
    /// Whether the trace has wake-ups. Otherwise only waits after a preemption are known.
    has_wakeups: bool,
    durations: Durations,
    /// Numbers of waits by the number of binary digits of the nanoseconds. The last entry also counts
    /// longer waits.
    powers: [u64; u64::BITS as usize],
    worst: Longest<Wait>,
    /// Waits after a preemption.
    preempted: Durations,
    worst_preempted: Longest<Wait>,
    /// The threads that ran on each CPU.
    runners: HashMap<usize, Runners>,
    threads: HashMap<(i64, Life), Thread>,
}

/// A wait: the CPU on which the thread then ran, the thread, and the thread that ran there longest meanwhile.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Wait {
    cpu: u32,
    tid: i64,
    comm: String,
    ran: Option<Ran>,
}

/// A thread that ran while another one waited for its CPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
struct Ran {
    /// Time during the wait.
    took_ns: u64,
    /// The thread; 0 is the idle task.
    tid: i64,
    comm: String,
}

/// Waits of a thread.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
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
            record: "-e sched_switch,sched_waking,sched_wakeup,sched_wakeup_new".into(),
        };
        if !catalogue.has_switches() {
            return Err(missing("sched_switch"));
        }
        Ok(Self {
            clock: catalogue.metadata().clock,
            has_wakeups: catalogue.has_wakeups(),
            preempted: Durations::new(),
            worst_preempted: Longest::new(),
            runners: HashMap::new(),
            durations: Durations::new(),
            powers: [0; u64::BITS as usize],
            worst: Longest::new(),
            threads: HashMap::new(),
        })
    }
}

impl Latency {
    /// Notes that a thread ran.
    fn note(&mut self, span: &Span, schedule: &Schedule) {
        if let Some(cpu) = span.cpu.filter(|_| span.state == Activity::Running) {
            self.runners.entry(cpu).or_default().add(span, schedule);
        }
    }

    /// Returns the thread that ran longest on a CPU during a wait, if one ran.
    fn ran(&self, cpu: usize, wait: &Span, schedule: &Schedule) -> Option<Ran> {
        let (tid, ticks) = self.runners.get(&cpu)?.longest(wait)?;
        let comm = schedule.comm(tid).unwrap_or_default();
        Some(Ran {
            took_ns: self.clock.nanoseconds(ticks),
            tid,
            comm: printing::text(comm).into_owned(),
        })
    }

    /// Takes a wait of a thread that was preempted, or that yielded.
    fn preempted(&mut self, span: &Span, cpu: usize, schedule: &Schedule) {
        let latency_ns = self.clock.nanoseconds(span.ticks());
        self.preempted.add(latency_ns);
        if self.worst_preempted.keeps(latency_ns) {
            let comm = schedule.comm(span.tid).unwrap_or_default();
            let wait = Wait {
                cpu: schedule.number(cpu),
                tid: span.tid,
                comm: printing::text(comm).into_owned(),
                ran: self.ran(cpu, span, schedule),
            };
            self.worst_preempted.add(latency_ns, span.from, || wait);
        }
    }
}

impl Analysis for Latency {
    fn around(&mut self, span: &Span, schedule: &Schedule) {
        self.note(span, schedule);
    }

    fn span(&mut self, span: &Span, schedule: &Schedule) {
        self.note(span, schedule);
        let (Activity::Runnable { woken }, true, Some(cpu)) =
            (span.state, span.is_complete, span.cpu)
        else {
            return;
        };
        if !woken {
            return self.preempted(span, cpu, schedule);
        }
        let latency_ns = self.clock.nanoseconds(span.ticks());
        let ran = match self.worst.keeps(latency_ns) {
            true => self.ran(cpu, span, schedule),
            false => None,
        };
        self.durations.add(latency_ns);
        let digits = (u64::BITS - latency_ns.leading_zeros()) as usize;
        self.powers[digits.min(self.powers.len() - 1)] += 1;
        let comm = schedule.comm(span.tid).unwrap_or_default();
        let thread = self.threads.entry((span.tid, span.life)).or_default();
        if thread.comm.as_bytes() != comm {
            thread.comm = printing::text(comm).into_owned();
        }
        thread.wakeups += 1;
        thread.total_ns = thread.total_ns.saturating_add(latency_ns);
        thread.max_ns = thread.max_ns.max(latency_ns);
        self.worst.add(latency_ns, span.from, || Wait {
            cpu: schedule.number(cpu),
            tid: span.tid,
            comm: thread.comm.clone(),
            ran,
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
        Box::new(LatencyAnswer {
            percentile_error: PERCENTILE_ERROR,
            wakeups_recorded: self.has_wakeups,
            preempted: Preempted {
                durations: self.preempted,
                worst: rows(self.worst_preempted, clock, |worst, since_ns| {
                    WorstPreempted { worst, since_ns }
                }),
            },
            durations: self.durations,
            histogram: range
                .map(|digits| Bar {
                    from_ns: (1 << digits) >> 1,
                    below_ns: 1 << digits,
                    count: self.powers[digits],
                })
                .collect(),
            worst: rows(self.worst, clock, |worst, woken_ns| WorstWoken {
                worst,
                woken_ns,
            }),
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

/// Returns the rows of the longest waits, each made from its values and its begin since the epoch.
fn rows<T>(waits: Longest<Wait>, clock: Clock, row: impl Fn(Worst, Option<i64>) -> T) -> Vec<T> {
    let rows = waits.into_sorted().map(|wait| {
        let begin = i64::try_from(clock.since_epoch(wait.since.0)).ok();
        let worst = Worst {
            latency_ns: wait.nanoseconds,
            cpu: wait.what.cpu,
            tid: wait.what.tid,
            comm: wait.what.comm,
            ran: wait.what.ran,
        };
        row(worst, begin)
    });
    rows.collect()
}

/// Answer to `--latency`.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct LatencyAnswer {
    /// Maximum share of its value by which a percentile is too large.
    percentile_error: f64,
    /// Whether wake-ups are in the trace. Otherwise only waits after a preemption are known.
    wakeups_recorded: bool,
    /// Waits of preempted threads, and of threads that yielded.
    preempted: Preempted,
    #[serde(flatten)]
    durations: Durations,
    histogram: Vec<Bar>,
    /// The longest waits.
    worst: Vec<WorstWoken>,
    /// All threads that were woken, the one with the longest wait first.
    threads: Vec<Thread>,
}

/// A row of the histogram.
#[derive(Debug, JsonSchema, Serialize)]
struct Bar {
    from_ns: u64,
    below_ns: u64,
    count: u64,
}

/// Waits after a preemption.
#[derive(Debug, JsonSchema, Serialize)]
struct Preempted {
    #[serde(flatten)]
    durations: Durations,
    /// The longest waits.
    worst: Vec<WorstPreempted>,
}

/// A long wait.
#[derive(Debug, JsonSchema, Serialize)]
struct Worst {
    latency_ns: u64,
    /// CPU on which the thread then ran.
    cpu: u32,
    tid: i64,
    comm: String,
    /// The thread that ran there longest meanwhile.
    ran: Option<Ran>,
}

/// A long wait after a wake-up.
#[derive(Debug, JsonSchema, Serialize)]
struct WorstWoken {
    #[serde(flatten)]
    worst: Worst,
    /// Time of the wake-up since the epoch.
    woken_ns: Option<i64>,
}

/// A long wait after a preemption.
#[derive(Debug, JsonSchema, Serialize)]
struct WorstPreempted {
    #[serde(flatten)]
    worst: Worst,
    /// Time of the preemption since the epoch.
    since_ns: Option<i64>,
}

impl Answer for LatencyAnswer {
    fn name(&self) -> &'static str {
        "latency"
    }

    fn json(&self) -> serde_json::Result<Json> {
        serde_json::to_value(self)
    }

    fn text(&self, out: &mut String, rows: usize) -> fmt::Result {
        if self.durations.count() == 0 && self.wakeups_recorded {
            writeln!(out, "\nNo thread was woken and then ran.")?;
        }
        let what = "from a wake-up until the thread runs";
        summary(out, &self.durations, "wake-ups", what)?;
        let preempted = &self.preempted;
        let what = "from a preemption until the thread runs again";
        summary(out, &preempted.durations, "preempted", what)?;
        if self.durations.count().max(preempted.durations.count()) > 0 {
            writeln!(out, "{}", accuracy(self.percentile_error))?;
        }
        if !self.wakeups_recorded {
            writeln!(
                out,
                "Wake-ups are not in the trace, so only waits after a preemption are known. `rtrace record -e sched_waking` records them."
            )?;
        }
        if self.durations.count() > 0 {
            self.bars(out)?;
        }
        let woken = self.worst.iter().map(|row| (row.woken_ns, &row.worst));
        longest(out, rows, "woken", woken, "the longest waits")?;
        let worst = preempted.worst.iter();
        let worst = worst.map(|row| (row.since_ns, &row.worst));
        let what = "the longest waits after a preemption";
        longest(out, rows, "preempted", worst, what)?;
        if self.durations.count() > 0 {
            self.threads(out, rows)?;
        }
        Ok(())
    }
}

/// Writes a table with one row: the number of waits, and their length.
fn summary(out: &mut String, times: &Durations, label: &str, what: &str) -> fmt::Result {
    if times.count() == 0 {
        return Ok(());
    }
    let heading = format!("{label:>10}{HEADINGS}  {what}");
    table(out, &heading, slice::from_ref(times), 1, |times| {
        format!("{:>10}{}", times.count(), times.columns())
    })
}

/// Writes a table of waits, each with the time of its begin.
fn longest<'a>(
    out: &mut String,
    rows: usize,
    begin: &str,
    waits: impl Iterator<Item = (Option<i64>, &'a Worst)>,
    what: &str,
) -> fmt::Result {
    let waits: Vec<_> = waits.collect();
    let Some((first, _)) = waits.first() else {
        return Ok(());
    };
    let times = date::Column::of(waits.iter().map(|(begin, _)| *begin));
    let heading = format!(
        "{:>10}  {:<width$} {:>5} {:>8}  {what}",
        "waited",
        format!("{begin} ({})", date::zone_name(*first)),
        "CPU",
        "tid",
        width = times.width()
    );
    table(out, &heading, &waits, rows, |(begin, wait)| {
        let ran = wait.ran.as_ref().map(|ran| {
            let who = match ran.tid {
                0 => "idle".to_owned(),
                tid => format!("{}-{tid}", printable(&ran.comm)),
            };
            format!("  ({who} ran {} of it)", duration(ran.took_ns))
        });
        format!(
            "{:>10}  {:<width$} {:>5} {:>8}  {}{}",
            duration(wait.latency_ns),
            times.show(*begin),
            wait.cpu,
            wait.tid,
            printable(&wait.comm),
            ran.unwrap_or_default(),
            width = times.width()
        )
    })
}

impl LatencyAnswer {
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
