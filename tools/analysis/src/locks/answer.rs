// SPDX-License-Identifier: GPL-2.0

//! The answer to `--locks`.

use super::futexes::Futex;
use super::kernel::KernelLock;
use super::waiters::{WaiterFound, Waiters};
use super::waits::{Waiter, WaitsFound};
use crate::durations::{accuracy, known, COARSE_ERROR, HEADINGS};
use crate::text::{more, or_unknown, table};
use crate::Answer;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use std::fmt::{self, Write};
use terminal::printable;

/// The locks of a trace that threads had to wait for.
#[derive(Debug, JsonSchema, Serialize)]
pub struct LocksAnswer {
    /// Maximum share of its value by which a percentile is too large.
    percentile_error: f64,
    /// Kernel locks; `None` if the trace does not have them.
    kernel: Option<Vec<KernelLock>>,
    futexes: Option<Vec<Futex>>,
    /// Waits by the thread that waited and the thread that held the lock.
    waiters: Vec<WaiterFound>,
    /// Whether the trace has the wake-ups, by which the holders are known.
    has_holders: bool,
}

impl LocksAnswer {
    /// Creates the answer.
    pub fn new(
        kernel: Option<Vec<KernelLock>>,
        futexes: Option<Vec<Futex>>,
        waiters: Waiters,
    ) -> Self {
        Self {
            has_holders: waiters.has_waking(),
            waiters: waiters.found(),
            percentile_error: COARSE_ERROR,
            kernel,
            futexes,
        }
    }
}

impl Answer for LocksAnswer {
    fn name(&self) -> &'static str {
        "locks"
    }

    fn json(&self) -> serde_json::Result<Json> {
        serde_json::to_value(self)
    }

    fn text(&self, out: &mut String, rows: usize) -> fmt::Result {
        match &self.kernel {
            None => writeln!(
                out,
                "\nLocks of the kernel are not in the trace: `rtrace record -e contention_begin,contention_end,sched_switch` records them."
            )?,
            Some(locks) if locks.is_empty() => {
                writeln!(out, "\nNo thread had to wait for a lock of the kernel.")?;
            }
            Some(locks) => kernel(locks, out, rows)?,
        }
        match &self.futexes {
            None => writeln!(
                out,
                "\nFutexes are not in the trace: `rtrace record -e 'syscall_*_futex*' -e sched_switch,sched_process_fork` records them."
            )?,
            Some(all) if all.is_empty() => writeln!(out, "\nNo thread waited for a futex.")?,
            Some(all) => futexes(all, out, rows)?,
        }
        waiters(&self.waiters, out, rows)?;
        if !self.has_holders && !self.waiters.is_empty() {
            writeln!(
                out,
                "The holders are not in the trace: `rtrace record -e sched_waking` records the wake-ups, by which they are known."
            )?;
        }
        writeln!(
            out,
            "\nA failed wait ended without the lock; an open wait had not ended at the end of the trace. {}",
            accuracy(self.percentile_error)
        )
    }
}

fn kernel(locks: &[KernelLock], out: &mut String, rows: usize) -> fmt::Result {
    let heading = format!(
        "{}  {:<11} {:<18} {:<18} who waited longest",
        wait_headings(),
        "kind",
        "lock",
        "where"
    );
    table(out, &heading, locks, rows, |lock| {
        format!(
            "{}  {:<11} {:<18} {:<18} {}",
            wait_columns(&lock.waits),
            lock.kind,
            lock.address,
            lock.place.as_deref().unwrap_or("-"),
            or_unknown(lock.waits.longest.as_ref().map(name))
        )
    })?;
    more(out, locks.len(), rows, "locks")
}

fn futexes(futexes: &[Futex], out: &mut String, rows: usize) -> fmt::Result {
    let heading = format!(
        "{}  {:<14} {:>8}  {:<16} who waited longest",
        wait_headings(),
        "futex",
        "pid",
        "process"
    );
    table(out, &heading, futexes, rows, |futex| {
        format!(
            "{}  {:<14} {:>8}  {:<16} {}",
            wait_columns(&futex.waits),
            futex.uaddr,
            or_unknown(futex.pid),
            or_unknown(futex.comm.as_deref().map(printable)),
            or_unknown(futex.waits.longest.as_ref().map(name))
        )
    })?;
    more(out, futexes.len(), rows, "futexes")
}

fn waiters(waiters: &[WaiterFound], out: &mut String, rows: usize) -> fmt::Result {
    if waiters.is_empty() {
        return Ok(());
    }
    let heading = format!(
        "{:>8} {:>7} {:>5} {:>10} {:>10}  {:<24} {:<24} {:<11} lock",
        "waits", "failed", "open", "total", "max", "who waited", "who held it", "kind"
    );
    table(out, &heading, waiters, rows, |row| {
        let timed = row.waits.saturating_sub(row.unfinished);
        format!(
            "{:>8} {:>7} {:>5} {:>10} {:>10}  {:<24} {:<24} {:<11} {}",
            row.waits,
            row.failed,
            row.unfinished,
            known(row.total_ns, timed),
            known(row.max_ns, timed),
            name(&row.waiter),
            or_unknown(row.holder.as_ref().map(name)),
            row.kind,
            row.address
        )
    })?;
    more(out, waiters.len(), rows, "rows")
}

fn wait_headings() -> String {
    format!(
        "{:>8} {:>7} {:>5} {:>10}{HEADINGS}",
        "waits", "failed", "open", "total"
    )
}

fn wait_columns(waits: &WaitsFound) -> String {
    let times = &waits.durations;
    format!(
        "{:>8} {:>7} {:>5} {:>10}{}",
        times.count().saturating_add(waits.unfinished),
        waits.failed,
        waits.unfinished,
        known(times.total_ns(), times.count()),
        times.columns()
    )
}

fn name(waiter: &Waiter) -> String {
    let comm = or_unknown(waiter.comm.as_deref().map(printable));
    format!("{comm} ({})", waiter.tid)
}
