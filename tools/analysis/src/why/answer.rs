// SPDX-License-Identifier: GPL-2.0

//! The answer of `rtrace why`.

use super::row::{rows, Row};
use super::Why;
use crate::text::{more, percent, table};
use crate::threads::Waiter;
use crate::Answer;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use std::fmt::{self, Write};
use terminal::{date, duration, printable};

/// The causes of the waits of some threads.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Found {
    threads: Vec<Waiter>,
    /// Sum of the three times below. The causes add up to it.
    waiting_ns: u64,
    /// Time in which the threads were blocked.
    blocked_ns: u64,
    /// Time in which they waited for a CPU.
    runnable_ns: u64,
    /// Time in which interrupts ran on their CPUs in place of the threads.
    interrupted_ns: Option<u64>,
    /// Time from the begin of the trace, or of the range, until the wake-ups of threads that slept since the begin of the
    /// trace. It is in no other figure.
    before_ns: u64,
    /// Number of times that older changes were forgotten. If it is not 0, a part of a long wait is unknown.
    forgotten: u64,
    /// The causes, those with most time first.
    causes: Vec<Row>,
    /// Events that would show more, and options of `rtrace record` that record them.
    hints: Vec<Hint>,
}

/// Events that the trace lacks.
#[derive(Debug, JsonSchema, Serialize)]
struct Hint {
    text: &'static str,
    record: &'static str,
}

impl Found {
    /// Creates the answer.
    pub fn new(mut why: Why) -> Self {
        let threads = std::mem::take(&mut why.threads);
        let sum = |of: fn(&Waiter) -> u64| threads.iter().map(of).fold(0, u64::saturating_add);
        let interrupted = threads.iter().filter_map(|thread| thread.interrupted_ns);
        let waiting = sum(Waiter::waiting_ns);
        let tree = std::mem::take(&mut why.tree);
        Self {
            causes: rows(tree, &why, waiting),
            waiting_ns: waiting,
            blocked_ns: sum(|thread| thread.blocked_ns),
            runnable_ns: sum(|thread| thread.runnable_ns),
            interrupted_ns: interrupted.reduce(u64::saturating_add),
            before_ns: why.clock.nanoseconds(why.before),
            forgotten: why.history.forgotten(),
            hints: hints(&why),
            threads,
        }
    }
}

fn hints(why: &Why) -> Vec<Hint> {
    let mut hints = Vec::new();
    let mut hint = |is_missing, text, record| {
        if is_missing {
            hints.push(Hint { text, record });
        }
    };
    hint(
        !why.wakeups.has_waking(),
        "the wakers of threads are not in the trace",
        "-e sched_waking",
    );
    hint(
        !why.places.has_calls() && !why.places.has_stacks(),
        "the places in which threads sleep are not in the trace",
        "-e syscalls` or `--context callstack-kernel,callstack-user",
    );
    hint(
        !why.handlers.has_all(),
        "interrupts or timers are not in the trace: a thread woken by one seems to be woken by the interrupted thread",
        "-e irq -e 'timer_*expire*'",
    );
    hint(
        why.requests.is_none(),
        "requests to disks are not in the trace",
        "-e 'block_rq_*'",
    );
    hints
}

impl Answer for Found {
    fn name(&self) -> &'static str {
        "why"
    }

    fn json(&self) -> serde_json::Result<Json> {
        serde_json::to_value(self)
    }

    fn text(&self, out: &mut String, rows: usize) -> fmt::Result {
        let interrupted = match self.interrupted_ns {
            Some(time) => format!(", {} interrupted", duration(time)),
            None => String::new(),
        };
        writeln!(
            out,
            "\n{} waited {}: {} blocked, {} runnable{interrupted}",
            self.names(),
            duration(self.waiting_ns),
            duration(self.blocked_ns),
            duration(self.runnable_ns),
        )?;
        let mut lines = Vec::new();
        for row in self.causes.iter().take(rows) {
            row.lines(0, rows == usize::MAX, &mut lines);
        }
        let begins = lines.iter().map(|(_, row)| row.begin());
        let times = date::Column::of(begins);
        let zone = date::zone_name(lines.first().and_then(|(_, row)| row.begin()));
        let heading = format!(
            "{:>6} {:>10} {:>7} {:>10}  {:<width$} cause",
            "share",
            "total",
            "times",
            "longest",
            format!("at ({zone})"),
            width = times.width()
        );
        table(out, &heading, &lines, lines.len(), |(depth, row)| {
            let longest = row.longest.first().map_or(0, |longest| longest.duration_ns);
            format!(
                "{:>6} {:>10} {:>7} {:>10}  {:<width$} {:indent$}{}",
                percent(row.total_ns, self.waiting_ns),
                duration(row.total_ns),
                row.times,
                duration(longest),
                times.show(row.begin()),
                "",
                row.text,
                indent = 2 * depth,
                width = times.width()
            )
        })?;
        more(out, self.causes.len(), rows, "causes")?;
        self.notes(out)
    }
}

impl Found {
    /// Returns the threads that are asked about.
    fn names(&self) -> String {
        match self.threads.as_slice() {
            [] => String::new(),
            [one] => format!("{} ({})", printable(&one.comm), one.tid),
            [first, others @ ..] => {
                let is_same = others.iter().all(|other| other.comm == first.comm);
                let count = self.threads.len();
                match is_same {
                    true => format!("{count} threads {}", printable(&first.comm)),
                    false => format!("{count} threads"),
                }
            }
        }
    }

    fn notes(&self, out: &mut String) -> fmt::Result {
        writeln!(
            out,
            "\nBelow a cause: what the waker did meanwhile. The time is the begin of the longest instance."
        )?;
        if self.before_ns > 0 {
            writeln!(
                out,
                "Not in these figures: {} from the begin of the trace until the first wake-up of threads that slept then.",
                duration(self.before_ns)
            )?;
        }
        if self.forgotten > 0 {
            writeln!(
                out,
                "More events occurred during a wait than the analysis keeps: the causes before them are unknown."
            )?;
        }
        for hint in &self.hints {
            writeln!(out, "Hint: {}: `rtrace record {}`.", hint.text, hint.record)?;
        }
        Ok(())
    }
}
