// SPDX-License-Identifier: GPL-2.0

//! Table of the work of threads in a period.

use crate::args::Column;
use analysis::text::percent;
use analysis::Answer;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use std::cmp::Reverse;
use std::fmt::{self, Write};
use terminal::{date, duration, printable, HEADING};

/// The table.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct TopTable {
    /// Begin of the period, in nanoseconds since the epoch.
    pub begin_ns: i128,
    /// Length of the period.
    pub duration_ns: u64,
    /// Number of CPUs that had events so far.
    pub cpus: usize,
    /// Events lost in the period. If any were lost, all figures are lower bounds.
    pub lost: u64,
    /// Packets lost.
    pub packets_lost: u64,
    /// Calls whose threads are unknown.
    pub unknown_calls: u64,
    /// Each thread that did any work.
    #[serde(rename = "threads")]
    pub rows: Vec<ThreadRow>,
}

/// The work of a thread.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct ThreadRow {
    /// The thread's id.
    pub tid: i64,
    /// The thread's name.
    pub comm: String,
    /// Time on a CPU.
    pub cpu_ns: u64,
    /// Number of times that the thread got a CPU.
    pub switches: u64,
    /// Number of times that the thread ran after a wake-up.
    pub wakeups: u64,
    /// The longest of these waits for a CPU.
    pub worst_wait_ns: u64,
    /// System calls that it made.
    pub calls: u64,
    /// System calls that failed.
    pub errors: u64,
    /// The call that it made most often.
    pub top_call: Option<String>,
}

impl TopTable {
    /// Sorts the rows.
    pub fn sort(&mut self, column: Column) {
        let key = |row: &ThreadRow| match column {
            Column::Cpu => row.cpu_ns,
            Column::Switches => row.switches,
            Column::Wakeups => row.wakeups,
            Column::Wait => row.worst_wait_ns,
            Column::Calls => row.calls,
            Column::Errors => row.errors,
            Column::Tid => 0,
        };
        self.rows.sort_by_key(|row| (Reverse(key(row)), row.tid));
    }

    /// The line above the table.
    pub fn head(&self) -> String {
        let sum = |of: fn(&ThreadRow) -> u64| self.rows.iter().map(of).sum::<u64>();
        let all = self.duration_ns.saturating_mul(self.cpus as u64);
        let mut head = format!(
            "{} for {}: {} CPUs {} busy, {} switches/s, {} calls/s",
            date::readable(self.begin_ns),
            duration(self.duration_ns),
            self.cpus,
            percent(sum(|row| row.cpu_ns), all),
            self.rate(sum(|row| row.switches)),
            self.rate(sum(|row| row.calls) + self.unknown_calls),
        );
        // Writing to a String cannot fail.
        let _ = match (self.lost, self.packets_lost) {
            (0, 0) => Ok(()),
            (lost, 0) => write!(head, "; {lost} events LOST"),
            (lost, packets) => write!(head, "; {lost} events and {packets} packets LOST"),
        };
        head
    }

    /// The names of the columns.
    pub fn names() -> String {
        format!(
            "{:>8} {:<15} {:>6} {:>10} {:>9} {:>10} {:>9} {:>8}  top call",
            "TID", "COMM", "CPU%", "switches/s", "wakeups/s", "worst", "calls/s", "errors/s"
        )
    }

    /// A row as text.
    pub fn line(&self, row: &ThreadRow) -> String {
        let wait = match row.wakeups {
            0 => "-".to_owned(),
            _ => duration(row.worst_wait_ns),
        };
        let cpu = row.cpu_ns as f64 * 100.0 / self.duration_ns.max(1) as f64;
        format!(
            "{:>8} {:<15} {cpu:>6.1} {:>10} {:>9} {wait:>10} {:>9} {:>8}  {}",
            row.tid,
            printable(&row.comm),
            self.rate(row.switches),
            self.rate(row.wakeups),
            self.rate(row.calls),
            self.rate(row.errors),
            row.top_call.as_deref().map_or("-".into(), printable),
        )
    }

    /// A count per second, rounded.
    fn rate(&self, count: u64) -> u64 {
        let time = u128::from(self.duration_ns.max(1));
        let rate = (u128::from(count) * 1_000_000_000 + time / 2) / time;
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}

impl Answer for TopTable {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn json(&self) -> serde_json::Result<Json> {
        serde_json::to_value(self)
    }

    fn text(&self, out: &mut String, rows: usize) -> fmt::Result {
        writeln!(out, "{}", self.head())?;
        writeln!(out, "{HEADING}{}{HEADING:#}", Self::names())?;
        for row in self.rows.iter().take(rows) {
            writeln!(out, "{}", self.line(row))?;
        }
        match self.rows.len().saturating_sub(rows) {
            0 => Ok(()),
            left => writeln!(out, "{left:>8} more threads (-n 0 shows all)"),
        }
    }
}
