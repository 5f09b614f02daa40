// SPDX-License-Identifier: GPL-2.0

//! The answer to `--critical-path`.

use super::segment::{Segment, What};
use crate::text::{more, or_unknown, percent, table};
use crate::Answer;
use ctf::Clock;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Write};
use terminal::{date, duration, printable};

/// The critical path of a thread.
#[derive(Debug, JsonSchema, Serialize)]
pub struct CriticalPathAnswer {
    tid: i64,
    comm: Option<String>,
    /// Begin of the path, since the epoch; `None` if the trace does not have the thread.
    begin_ns: Option<i64>,
    /// Duration of the path, which is the total of the segments and also of the sums.
    duration_ns: u64,
    /// Whether the trace has interrupts and timers, so that their handlers are distinct from the
    /// interrupted threads.
    interrupts_recorded: bool,
    /// Number of times that older changes were forgotten. If it is not 0, a part of a long sleep is
    /// unknown.
    forgotten: u64,
    /// Segments in order of time.
    segments: Vec<Row>,
    /// Sums, the longest first.
    sums: Vec<Sum>,
}

/// Row of a segment.
#[derive(Debug, JsonSchema, Serialize)]
struct Row {
    /// Begin since the epoch.
    from_ns: Option<i64>,
    duration_ns: u64,
    /// The thread on the path.
    tid: i64,
    comm: Option<String>,
    state: &'static str,
    /// The thread that waited for this thread; `None` if this thread is the one of `--critical-path`.
    waiter: Option<i64>,
    waiter_comm: Option<String>,
    /// For runnable: the CPU that the thread waited for, and the thread that ran there. 0 is the idle task.
    cpu: Option<u32>,
    runner: Option<i64>,
    runner_comm: Option<String>,
    /// For blocked: the handler that woke the thread.
    woken_by: Option<String>,
}

/// Total time of a thread in one state.
#[derive(Debug, JsonSchema, Serialize)]
struct Sum {
    tid: i64,
    comm: Option<String>,
    state: &'static str,
    segments: u64,
    total_ns: u64,
}

impl CriticalPathAnswer {
    /// Creates the answer from these segments.
    pub fn new(
        clock: Clock,
        tid: i64,
        segments: &[Segment],
        names: &HashMap<i64, String>,
        interrupts_recorded: bool,
        forgotten: u64,
    ) -> Self {
        let comm = |tid: i64| names.get(&tid).cloned();
        let begin = segments.first().map_or(0, |segment| segment.from);
        // Nanoseconds from the begin of the path. Differences of these values add up to the duration.
        let at = |time: u64| clock.nanoseconds(time - begin);
        let epoch = |time| i64::try_from(clock.since_epoch(time)).ok();
        let mut sums: BTreeMap<(i64, &'static str), (u64, u64)> = BTreeMap::new();
        let rows = segments.iter().map(|segment| {
            let state = state(&segment.what);
            let duration_ns = at(segment.to) - at(segment.from);
            let sum = sums.entry((segment.tid, state)).or_default();
            sum.0 += 1;
            sum.1 += duration_ns;
            let waits_for = match segment.what {
                What::WaitedFor(cpu) => cpu,
                _ => None,
            };
            let runner = waits_for.and_then(|(_, runner)| runner);
            Row {
                from_ns: epoch(segment.from),
                duration_ns,
                tid: segment.tid,
                comm: comm(segment.tid),
                state,
                waiter: segment.wakes,
                waiter_comm: segment.wakes.and_then(comm),
                cpu: waits_for.map(|(cpu, _)| cpu),
                runner,
                runner_comm: runner.and_then(comm),
                woken_by: match &segment.what {
                    What::WokenBy(name) => Some(name.to_string()),
                    _ => None,
                },
            }
        });
        let rows = rows.collect();
        let sums = sums.into_iter();
        let mut sums: Vec<_> = sums
            .map(|((tid, state), (segments, total_ns))| Sum {
                tid,
                comm: comm(tid),
                state,
                segments,
                total_ns,
            })
            .collect();
        sums.sort_by_key(|sum| Reverse(sum.total_ns));
        Self {
            tid,
            comm: comm(tid),
            begin_ns: segments.first().and_then(|segment| epoch(segment.from)),
            duration_ns: segments.last().map_or(0, |segment| at(segment.to)),
            interrupts_recorded,
            forgotten,
            segments: rows,
            sums,
        }
    }
}

fn state(what: &What) -> &'static str {
    match what {
        What::Ran => "running",
        What::WaitedFor(_) => "runnable",
        What::WokenBy(_) => "blocked",
        What::Unknown => "unknown",
    }
}

impl Answer for CriticalPathAnswer {
    fn name(&self) -> &'static str {
        "critical_path"
    }

    fn json(&self) -> serde_json::Result<Json> {
        serde_json::to_value(self)
    }

    fn text(&self, out: &mut String, rows: usize) -> fmt::Result {
        if self.segments.is_empty() {
            return writeln!(out, "\nThread {} does not run in the trace.", self.tid);
        }
        // The newest segments explain the end of the path.
        let hidden = self.segments.len().saturating_sub(rows);
        let times = self.segments[hidden..].iter().map(|row| row.from_ns);
        let times = date::Column::of(times);
        let heading = format!(
            "{:<width$} {:>10} {:>8}  {:<16} {:<9} the critical path of {}",
            format!("from ({})", date::zone_name(self.segments[0].from_ns)),
            "duration",
            "tid",
            "thread",
            "state",
            name(Some(self.tid), self.comm.as_deref()),
            width = times.width()
        );
        table(out, &heading, &self.segments[hidden..], rows, |row| {
            format!(
                "{:<width$} {:>10} {:>8}  {:<16} {:<9} {}",
                times.show(row.from_ns),
                duration(row.duration_ns),
                row.tid,
                or_unknown(row.comm.as_deref().map(printable)),
                row.state,
                row.what_for(),
                width = times.width()
            )
        })?;
        if hidden > 0 {
            writeln!(
                out,
                "{hidden:>14}         earlier segments (-n 0 shows all)"
            )?;
        }
        let heading = format!(
            "{:>10} {:>6} {:>9} {:>8}  {:<16} state",
            "total", "share", "segments", "tid", "thread"
        );
        table(out, &heading, &self.sums, rows, |sum| {
            format!(
                "{:>10} {:>6} {:>9} {:>8}  {:<16} {}",
                duration(sum.total_ns),
                percent(sum.total_ns, self.duration_ns),
                sum.segments,
                sum.tid,
                or_unknown(sum.comm.as_deref().map(printable)),
                sum.state
            )
        })?;
        more(out, self.sums.len(), rows, "sums")?;
        writeln!(out, "{:>10} in all", duration(self.duration_ns))?;
        self.notes(out)
    }

    fn lacks(&self) -> Option<String> {
        let is_empty = self.segments.is_empty();
        is_empty.then(|| format!("thread {} does not run in the trace", self.tid))
    }
}

impl CriticalPathAnswer {
    fn notes(&self, out: &mut String) -> fmt::Result {
        if !self.interrupts_recorded {
            writeln!(
                out,
                "\nInterrupts or timers are not in the trace: a thread woken by one seems to be woken by the interrupted thread. `rtrace record -e irq -e 'timer_*expire*'` records them."
            )?;
        }
        if self.forgotten > 0 {
            writeln!(
                out,
                "\nMore events occurred during a sleep than the analysis keeps: the causes before them are unknown."
            )?;
        }
        Ok(())
    }
}

impl Row {
    fn what_for(&self) -> String {
        let mut words = Vec::new();
        match (self.cpu, self.runner, &self.woken_by) {
            (Some(cpu), Some(0), _) => words.push(format!("CPU {cpu}, idle")),
            (Some(cpu), runner @ Some(_), _) => {
                let runner = name(runner, self.runner_comm.as_deref());
                words.push(format!("CPU {cpu}, where {runner} ran"));
            }
            (Some(cpu), None, _) => words.push(format!("CPU {cpu}")),
            (None, _, Some(woken_by)) => words.push(format!("woken by {}", printable(woken_by))),
            (None, _, None) => {}
        }
        if self.waiter.is_some() {
            let waiter = name(self.waiter, self.waiter_comm.as_deref());
            words.push(format!("for {waiter}"));
        }
        words.join(", ")
    }
}

fn name(tid: Option<i64>, comm: Option<&str>) -> String {
    let comm = or_unknown(comm.map(printable));
    format!("{comm} ({})", or_unknown(tid))
}
