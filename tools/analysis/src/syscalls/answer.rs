// SPDX-License-Identifier: GPL-2.0

//! The answer to `--syscalls`.

use crate::durations::{accuracy, known, Durations, HEADINGS, PERCENTILE_ERROR};
use crate::text::{more, or_unknown, table};
use crate::Answer;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use terminal::printable;

/// Row of a system call.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct SyscallRow {
    /// Name of the call.
    pub name: String,
    /// Number of calls.
    pub calls: u64,
    /// Number of failed calls.
    pub errors: u64,
    /// Durations of the calls whose duration is known.
    #[serde(flatten)]
    pub durations: Durations,
}

/// Row of a system call in a process. There may be very many rows, so this type is small.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct ProcessCall {
    /// Process id.
    pub pid: Option<i64>,
    /// Thread id, if the process is not known.
    pub tid: Option<i64>,
    /// Last name of the process's first thread; if the process is not known, of the thread.
    pub comm: Option<String>,
    /// Name of the call.
    pub name: String,
    /// Number of calls.
    pub calls: u64,
    /// Number of failed calls.
    pub errors: u64,
    /// Number of calls whose duration is known.
    pub timed: u64,
    /// Total duration of these calls.
    pub total_ns: u64,
    /// Average duration of these calls.
    average_ns: u64,
    /// Duration of the longest of these calls.
    pub max_ns: u64,
}

impl SyscallRow {
    /// Creates a row without calls.
    pub fn new(name: String) -> Self {
        Self {
            name,
            calls: 0,
            errors: 0,
            durations: Durations::new(),
        }
    }

    /// Returns the number of calls whose duration is not known.
    fn untimed(&self) -> u64 {
        self.calls.saturating_sub(self.durations.count())
    }
}

/// The system calls of a trace.
#[derive(Debug, JsonSchema, Serialize)]
pub struct SyscallsAnswer {
    /// Maximum share of its value by which a percentile is too large.
    percentile_error: f64,
    /// Number of calls whose duration is not known.
    untimed: u64,
    /// Number of calls of other threads than recorded, because switches are missing in the trace.
    mistaken: u64,
    calls: Vec<SyscallRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    processes: Option<Vec<ProcessCall>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<Vec<NameCall>>,
}

/// Row of a system call in all processes of a name.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct NameCall {
    /// Name of the processes, if it is known.
    pub comm: Option<String>,
    /// Number of the processes that made the call.
    pub processes: u64,
    /// Name of the call.
    pub name: String,
    /// Number of calls.
    pub calls: u64,
    /// Number of failed calls.
    pub errors: u64,
    /// Number of calls whose duration is known.
    pub timed: u64,
    /// Total duration of these calls.
    pub total_ns: u64,
    /// Average duration of these calls.
    average_ns: u64,
    /// Duration of the longest of these calls.
    pub max_ns: u64,
}

/// Returns the sums over all processes of a name. Rows with the longest total time come first.
pub fn by_name(processes: Vec<ProcessCall>) -> Vec<NameCall> {
    let mut names: BTreeMap<_, NameCall> = BTreeMap::new();
    for call in processes {
        let key = (call.comm.clone(), call.name.clone());
        let row = names.entry(key).or_default();
        (row.comm, row.name) = (call.comm, call.name);
        row.processes += 1;
        row.calls += call.calls;
        row.errors += call.errors;
        row.timed += call.timed;
        row.total_ns = row.total_ns.saturating_add(call.total_ns);
        row.max_ns = row.max_ns.max(call.max_ns);
        row.average_ns = row.total_ns.checked_div(row.timed).unwrap_or(0);
    }
    let mut rows: Vec<_> = names.into_values().collect();
    // Rows of equal times stay in the order of their names.
    rows.sort_by_key(|row| Reverse((row.total_ns, row.calls)));
    rows
}

impl SyscallsAnswer {
    /// Creates the answer from all calls and, if requested, from the calls of each process. Rows with the
    /// longest total time come first. For `mistaken` calls the recorded thread is wrong.
    pub fn new(
        mut calls: Vec<SyscallRow>,
        mistaken: u64,
        mut processes: Option<Vec<ProcessCall>>,
        names: Option<Vec<NameCall>>,
    ) -> Self {
        calls.retain(|call| call.calls > 0);
        calls.sort_by(|a, b| {
            let key = |call: &SyscallRow| (call.durations.total_ns(), call.calls);
            key(b).cmp(&key(a)).then_with(|| a.name.cmp(&b.name))
        });
        if let Some(processes) = &mut processes {
            for call in processes.iter_mut() {
                call.average_ns = call.total_ns.checked_div(call.timed).unwrap_or(0);
            }
            processes.sort_by(|a, b| {
                let name = |call: &ProcessCall| (call.pid, call.tid, call.name.clone());
                let key = |call: &ProcessCall| (call.total_ns, call.calls);
                key(b).cmp(&key(a)).then_with(|| name(a).cmp(&name(b)))
            });
        }
        Self {
            percentile_error: PERCENTILE_ERROR,
            untimed: calls.iter().map(SyscallRow::untimed).sum(),
            mistaken,
            calls,
            processes,
            names,
        }
    }
}

impl Answer for SyscallsAnswer {
    fn name(&self) -> &'static str {
        "syscalls"
    }

    fn json(&self) -> serde_json::Result<Json> {
        serde_json::to_value(self)
    }

    fn text(&self, out: &mut String, rows: usize) -> fmt::Result {
        if self.calls.is_empty() {
            return writeln!(out, "\nNo system call was made.");
        }
        let heading = format!(
            "{:>10} {:>8} {:>10}{HEADINGS}  system call",
            "calls", "errors", "total"
        );
        table(out, &heading, &self.calls, rows, |call| {
            let times = &call.durations;
            format!(
                "{:>10} {:>8} {:>10}{}  {}",
                call.calls,
                call.errors,
                known(times.total_ns(), times.count()),
                times.columns(),
                printable(&call.name)
            )
        })?;
        more(out, self.calls.len(), rows, "system calls")?;
        if let Some(processes) = &self.processes {
            text_processes(processes, out, rows)?;
        }
        if let Some(names) = &self.names {
            text_names(names, out, rows)?;
        }
        writeln!(out, "\n{}", accuracy(self.percentile_error))?;
        if self.untimed > 0 {
            writeln!(
                out,
                "{} calls were not timed: they did not return while the trace was recorded, came before \
                 the first sched_switch of their CPU, or events around them were lost.",
                self.untimed
            )?;
        }
        if self.mistaken > 0 {
            writeln!(
                out,
                "{} calls may belong to other threads: not every sched_switch was recorded (--filter, --cgroup). With `--context tid,pid`, each call names its thread.",
                self.mistaken
            )?;
        }
        Ok(())
    }
}

fn text_names(names: &[NameCall], out: &mut String, rows: usize) -> fmt::Result {
    let heading = format!(
        "{:>10} {:>8} {:>10} {:>10} {:>10} {:>9}  {:<16} system call",
        "calls", "errors", "total", "average", "max", "processes", "name"
    );
    table(out, &heading, names, rows, |call| {
        let time = |ns| known(ns, call.timed);
        format!(
            "{:>10} {:>8} {:>10} {:>10} {:>10} {:>9}  {:<16} {}",
            call.calls,
            call.errors,
            time(call.total_ns),
            time(call.average_ns),
            time(call.max_ns),
            call.processes,
            or_unknown(call.comm.as_deref().map(printable)),
            printable(&call.name)
        )
    })?;
    more(out, names.len(), rows, "rows")
}

fn text_processes(processes: &[ProcessCall], out: &mut String, rows: usize) -> fmt::Result {
    let heading = format!(
        "{:>10} {:>8} {:>10} {:>10} {:>10} {:>8}  {:<16} system call",
        "calls", "errors", "total", "average", "max", "pid", "process"
    );
    table(out, &heading, processes, rows, |call| {
        let time = |ns| known(ns, call.timed);
        format!(
            "{:>10} {:>8} {:>10} {:>10} {:>10} {:>8}  {:<16} {}",
            call.calls,
            call.errors,
            time(call.total_ns),
            time(call.average_ns),
            time(call.max_ns),
            or_unknown(call.pid),
            or_unknown(call.comm.as_deref().map(printable)),
            printable(&call.name)
        )
    })?;
    more(out, processes.len(), rows, "rows")?;
    if processes.iter().any(|call| call.pid.is_none()) {
        writeln!(
            out,
            "Where the pid is ?, the process of the thread is not known: record with `--context pid`."
        )?;
    }
    Ok(())
}
