// SPDX-License-Identifier: GPL-2.0

//! The report without a question as text.

use super::durations::{accuracy, HEADINGS, PERCENTILE_ERROR};
use super::frame::{close, head};
use super::summary::Summary;
use super::text::{more, percent, table};
use std::fmt::{Result, Write};
use terminal::{bytes, duration, printable, HEADING};

/// Renders a summary with at most `rows` rows per table.
pub fn render(summary: &Summary, rows: usize) -> std::result::Result<String, std::fmt::Error> {
    let mut out = String::new();
    head(&mut out, &summary.head)?;
    events(&mut out, summary, rows)?;
    cpus(&mut out, summary)?;
    channels(&mut out, summary)?;
    tasks(&mut out, summary, rows)?;
    probes(&mut out, summary, rows)?;
    close(&mut out, &summary.losses)?;
    Ok(out)
}

fn events(out: &mut String, summary: &Summary, rows: usize) -> Result {
    writeln!(
        out,
        "\n{HEADING}{:>14} {:>6}  event{HEADING:#}",
        "count", "share"
    )?;
    for event in summary.events.iter().take(rows) {
        let share = percent(event.count, summary.losses.recorded);
        write!(
            out,
            "{:>14} {share:>6}  {}",
            event.count,
            printable(&event.name)
        )?;
        if summary.channels.len() > 1 {
            write!(out, " ({})", printable(&event.channel))?;
        }
        writeln!(out)?;
    }
    more(out, summary.events.len(), rows, "event types")
}

/// Writes the table of CPUs. A part of a trace has none.
fn cpus(out: &mut String, summary: &Summary) -> Result {
    if summary.cpus.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n{HEADING}{:>5} {:>12} {:>10} {:>8} {:>12} {:>6} {:>10}{HEADING:#}",
        "CPU", "events", "lost", "packets", "bytes", "busy", "unknown"
    )?;
    for cpu in &summary.cpus {
        writeln!(
            out,
            "{:>5} {:>12} {:>10} {:>8} {:>12} {:>6} {:>10}",
            cpu.cpu,
            cpu.content.events,
            cpu.content.lost,
            cpu.content.packets,
            bytes(cpu.content.bytes),
            percent(cpu.busy_ns, cpu.busy_ns.saturating_add(cpu.idle_ns)),
            duration(cpu.unknown_ns)
        )?;
    }
    Ok(())
}

/// Writes the table of channels, if there are several.
fn channels(out: &mut String, summary: &Summary) -> Result {
    if summary.channels.len() < 2 {
        return Ok(());
    }
    writeln!(
        out,
        "\n{HEADING}{:>14} {:>10} {:>8} {:>12}  channel{HEADING:#}",
        "events", "lost", "packets", "bytes"
    )?;
    for channel in &summary.channels {
        writeln!(
            out,
            "{:>14} {:>10} {:>8} {:>12}  {}",
            channel.content.events,
            channel.content.lost,
            channel.content.packets,
            bytes(channel.content.bytes),
            channel.name
        )?;
    }
    Ok(())
}

fn tasks(out: &mut String, summary: &Summary, rows: usize) -> Result {
    if summary.tasks.is_empty() {
        return writeln!(
            out,
            "\nNo sched_switch events: CPU time by task is unknown."
        );
    }
    let time = summary.head.duration_ns;
    writeln!(
        out,
        "\n{HEADING}{:>14} {:>6} {:>8}  task{HEADING:#}",
        "CPU time", "share", "tid"
    )?;
    for task in summary.tasks.iter().take(rows) {
        writeln!(
            out,
            "{:>14} {:>6} {:>8}  {}",
            duration(task.cpu_time_ns),
            percent(task.cpu_time_ns, time),
            task.tid,
            printable(&task.comm)
        )?;
    }
    more(out, summary.tasks.len(), rows, "tasks")
}

/// Writes the table of calls whose return was recorded with a duration, if there are any.
fn probes(out: &mut String, summary: &Summary, rows: usize) -> Result {
    if summary.probes.is_empty() {
        return Ok(());
    }
    let heading = format!("{:>10} {:>10}{HEADINGS}  returns", "calls", "total");
    table(out, &heading, &summary.probes, rows, |probe| {
        let times = &probe.durations;
        let (calls, total) = (times.count(), duration(times.total_ns()));
        let name = printable(&probe.name);
        format!("{calls:>10} {total:>10}{}  {name}", times.columns())
    })?;
    more(out, summary.probes.len(), rows, "probes")?;
    writeln!(out, "{}", accuracy(PERCENTILE_ERROR))
}
