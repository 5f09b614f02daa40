// SPDX-License-Identifier: GPL-2.0

//! The answer to `--io`.

use super::files::{FilesFound, Use};
use super::requests::{Device, RequestsFound};
use super::uring::UringFound;
use crate::durations::{accuracy, HEADINGS, PERCENTILE_ERROR};
use crate::text::{more, or_dash, or_unknown, table};
use crate::Answer;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use std::fmt::{self, Write};
use terminal::{bytes, date, duration, printable};

/// The input and output of a trace.
#[derive(Debug, JsonSchema, Serialize)]
pub struct IoAnswer {
    /// Maximum share of its value by which a percentile is too large.
    percentile_error: f64,
    /// Requests; `None` if the trace does not have them.
    requests: Option<RequestsFound>,
    files: Option<FilesFound>,
    /// Requests of io_uring; `None` if the trace does not have them.
    uring: Option<UringFound>,
    /// Number of calls of io_uring_enter.
    uring_enters: u64,
}

impl IoAnswer {
    /// Creates the answer.
    pub fn new(
        requests: Option<RequestsFound>,
        files: Option<FilesFound>,
        uring: Option<UringFound>,
        uring_enters: u64,
    ) -> Self {
        Self {
            percentile_error: PERCENTILE_ERROR,
            requests,
            files,
            uring,
            uring_enters,
        }
    }
}

impl Answer for IoAnswer {
    fn name(&self) -> &'static str {
        "io"
    }

    fn json(&self) -> serde_json::Result<Json> {
        serde_json::to_value(self)
    }

    fn text(&self, out: &mut String, rows: usize) -> fmt::Result {
        match &self.requests {
            None => writeln!(
                out,
                "\nRequests to block devices are not in the trace: `rtrace record -e 'block:block_rq_*'` records them."
            )?,
            Some(found) if found.devices.is_empty() => {
                writeln!(out, "\nNo request was made to a block device.")?;
            }
            Some(found) => {
                devices(&found.devices, out, rows)?;
                self.latencies(found, out, rows)?;
                longest(found, out, rows)?;
            }
        }
        match &self.uring {
            None if self.uring_enters > 0 => writeln!(
                out,
                "\nThe requests of {} calls of io_uring_enter are not in the trace: `rtrace record -e io_uring` records them.",
                self.uring_enters
            )?,
            None => {}
            Some(found) => self.uring(found, out, rows)?,
        }
        match &self.files {
            None => writeln!(
                out,
                "\nReads and writes of processes are not in the trace: `rtrace record -e syscalls,sched_switch,sched_process_fork,sched_process_exit` records them."
            ),
            Some(found) => files(found, out, rows),
        }
    }
}

fn devices(devices: &[Device], out: &mut String, rows: usize) -> fmt::Result {
    let heading = format!(
        "{:>10} {:>8} {:>10} {:>12} {:>10} {:>9}  {:<8} operation",
        "requests", "failed", "bytes", "per second", "mean depth", "max depth", "device"
    );
    table(out, &heading, devices, rows, |row| {
        format!(
            "{:>10} {:>8} {:>10} {:>12} {:>10.3} {:>9}  {:<8} {}",
            row.requests,
            row.failed,
            bytes(row.bytes),
            bytes(row.bytes_per_second),
            row.depth_mean,
            row.depth_max,
            row.device,
            row.operation
        )
    })?;
    more(out, devices.len(), rows, "rows")
}

impl IoAnswer {
    fn latencies(&self, found: &RequestsFound, out: &mut String, rows: usize) -> fmt::Result {
        let steps = found.devices.iter().flat_map(|row| {
            [
                (row, "insert to issue", &row.queued),
                (row, "issue to end", &row.served),
            ]
        });
        let steps: Vec<_> = steps.filter(|(_, _, times)| times.count() > 0).collect();
        let heading = format!("{:>10}{HEADINGS}  from", "timed");
        table(out, &heading, &steps, rows, |(row, step, times)| {
            format!(
                "{:>10}{}  {step}, {} {}",
                times.count(),
                times.columns(),
                row.device,
                row.operation
            )
        })?;
        more(out, steps.len(), rows, "rows")?;
        writeln!(out, "{}", accuracy(self.percentile_error))?;
        if !found.insert_recorded {
            writeln!(
                out,
                "The time from insert to issue is not in the trace: `rtrace record -e block_rq_insert` records it."
            )?;
        }
        Ok(())
    }
}

impl IoAnswer {
    fn uring(&self, found: &UringFound, out: &mut String, rows: usize) -> fmt::Result {
        if found.operations.is_empty() {
            writeln!(out, "\nNo request was made to io_uring.")?;
        } else {
            let heading = format!(
                "{:>9} {:>9} {:>7} {:>6} {:>9} {:>6}{HEADINGS} {:>8}  {:<16} operation of io_uring",
                "submitted", "done", "failed", "open", "by worker", "fixed", "pid", "process"
            );
            table(out, &heading, &found.operations, rows, |row| {
                format!(
                    "{:>9} {:>9} {:>7} {:>6} {:>9} {:>6}{} {:>8}  {:<16} {}",
                    row.submitted,
                    row.done,
                    row.failed,
                    row.open,
                    row.by_worker,
                    row.fixed,
                    row.took.columns(),
                    or_unknown(row.pid),
                    or_unknown(row.comm.as_deref().map(printable)),
                    printable(&row.operation)
                )
            })?;
            more(out, found.operations.len(), rows, "rows")?;
            writeln!(out, "{}", accuracy(self.percentile_error))?;
        }
        for (number, what) in [
            (found.further, "further results of requests with several results, or from other rings, count nowhere."),
            (found.unknown, "results have no known request: it began before the trace, or events around it were lost, or the kernel's addresses are hidden."),
            (found.overflowed, "results did not fit into their rings: their requests have no known end."),
        ] {
            if number > 0 {
                writeln!(out, "{number} {what}")?;
            }
        }
        Ok(())
    }
}

fn longest(found: &RequestsFound, out: &mut String, rows: usize) -> fmt::Result {
    let first = found.longest.first().and_then(|request| request.begin_ns);
    let times = date::Column::of(found.longest.iter().map(|request| request.begin_ns));
    let heading = format!(
        "{:>10} {:>10}  {:<width$} {:<8} {:<8} {:>12} {:>10} {:>8}  the longest requests",
        "took",
        "to issue",
        format!("begin ({})", date::zone_name(first)),
        "device",
        "",
        "sector",
        "bytes",
        "tid",
        width = times.width()
    );
    table(out, &heading, &found.longest, rows, |request| {
        format!(
            "{:>10} {:>10}  {:<width$} {:<8} {:<8} {:>12} {:>10} {:>8}  {}",
            duration(request.total_ns),
            or_dash(request.queued_ns),
            times.show(request.begin_ns),
            request.device,
            request.operation,
            request.sector,
            bytes(request.bytes),
            or_unknown(request.tid),
            printable(&request.comm),
            width = times.width()
        )
    })
}

fn files(found: &FilesFound, out: &mut String, rows: usize) -> fmt::Result {
    if found.uses.is_empty() {
        writeln!(out, "\nNo process read or wrote by a system call.")?;
    } else {
        let heading = format!(
            "{:>8} {:>10} {:>8} {:>10} {:>7} {:>10} {:>10} {:>8}  {:<16} file",
            "reads", "bytes", "writes", "bytes", "errors", "time", "max", "pid", "process"
        );
        table(out, &heading, &found.uses, rows, |row| {
            format!(
                "{:>8} {:>10} {:>8} {:>10} {:>7} {:>10} {:>10} {:>8}  {:<16} {}",
                row.reads,
                bytes(row.read_bytes),
                row.writes,
                bytes(row.written_bytes),
                row.errors,
                duration(row.total_ns),
                duration(row.max_ns),
                or_unknown(row.pid),
                or_unknown(row.comm.as_deref().map(printable)),
                file(row)
            )
        })?;
        more(out, found.uses.len(), rows, "rows")?;
    }
    if found.unknown > 0 {
        writeln!(
            out,
            "\n{} reads and writes have no known file: they began before the trace, or events around them were lost.",
            found.unknown
        )?;
    }
    Ok(())
}

/// Returns the name of a file. If the time of its opening is not known, returns its descriptor instead.
fn file(row: &Use) -> String {
    let name = row.file.as_deref().map(printable);
    let process = || or_unknown(row.comm.as_deref().map(printable));
    name.unwrap_or_else(|| format!("fd {} of {}", or_unknown(row.fd), process()))
}
