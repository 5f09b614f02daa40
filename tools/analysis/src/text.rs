// SPDX-License-Identifier: GPL-2.0

//! The report without a question as text.

use super::durations::{accuracy, HEADINGS, PERCENTILE_ERROR};
use super::head::Head;
use super::loss::Losses;
use super::summary::Summary;
use consumer::{State, Totals};
use std::fmt::{Display, Result, Write};
use terminal::{bytes, date, duration, printable, HEADING};

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

/// Writes the head of a report.
pub fn head(out: &mut String, head: &Head) -> Result {
    let env = |key: &str| or_unknown(head.env.get(key).map(|text| printable(text)));
    writeln!(out, "trace     {}", head.trace)?;
    writeln!(
        out,
        "machine   {}, Linux {}",
        env("hostname"),
        env("kernel_release")
    )?;
    let begin = head.begin_ns.map(date::readable);
    writeln!(
        out,
        "begin     {}",
        begin.as_deref().unwrap_or("unknown: it has no packet")
    )?;
    writeln!(out, "duration  {}", duration(head.duration_ns))?;
    writeln!(
        out,
        "size      {}, {} packets",
        bytes(head.bytes),
        head.packets
    )
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

/// Writes the end of a report.
pub fn close(out: &mut String, losses: &Losses) -> Result {
    writeln!(out)?;
    let part = losses.recording.as_ref().and_then(|r| r.part.as_ref());
    if let Some(part) = part.filter(|part| part.chunk > 1) {
        writeln!(
            out,
            "This trace begins with its chunk {}: the chunks before it have the earlier events",
            part.chunk
        )?;
    } else if losses.packets_before > 0 {
        writeln!(
            out,
            "The newest part of a trace: {} packets before it were overwritten, or read earlier",
            losses.packets_before
        )?;
    }
    if losses.packets_lost > 0 {
        writeln!(
            out,
            "{} packets were overwritten before they were read: a larger buffer keeps more \
             (`rtrace record -b SIZExN`)",
            losses.packets_lost
        )?;
    }
    if losses.lost > 0 {
        advice(out, losses)?;
    }
    match losses.recording.as_ref().map(|recording| recording.state) {
        Some(State::Writing) => writeln!(
            out,
            "Unfinished: the trace is still being written, or its writer was killed. Only the losses in its packets are known"
        )?,
        Some(State::Failed) => writeln!(
            out,
            "Unfinished: the recording failed before its end, and later events are not in the trace"
        )?,
        Some(State::Over | State::Stopped) | None => {}
    }
    writeln!(out, "{}", totals(losses))
}

/// Writes a line for each reason for which events were lost. The packets alone do not tell the reason.
fn advice(out: &mut String, losses: &Losses) -> Result {
    let recording = losses.recording.as_ref();
    if recording.is_some_and(|recording| recording.state == State::Failed) {
        return writeln!(
            out,
            "Events were lost because the recording failed. If the disk was full, it needs more space, \
             or the trace a limit (`rtrace record --rotate SIZE --keep N`)"
        );
    }
    let stats = recording.and_then(|recording| recording.stats.as_ref());
    let total = stats.map(|stats| stats.all.total).unwrap_or_default();
    let reasons = [
        (
            total.full,
            "discarded because a buffer was full: record fewer (-e, -x), or use a larger buffer \
             (`rtrace record -b SIZExN`)",
        ),
        (
            total.overwritten,
            "overwritten before they were read: a larger buffer keeps more (`rtrace record -b SIZExN`)",
        ),
        (
            total.wrapped,
            "discarded because interrupts filled a buffer: more sub-buffers help (a larger N in \
             `rtrace record -b SIZExN`)",
        ),
        (
            total.too_large,
            "larger than a sub-buffer: larger sub-buffers help (a larger SIZE in \
             `rtrace record -b SIZExN`)",
        ),
        (
            total.nested,
            "discarded because they fired while rtrace recorded another event in the same context",
        ),
        (
            total.no_buffer,
            "discarded on CPUs without memory for a buffer: smaller buffers help",
        ),
        (
            total.busy,
            "discarded on isolated CPUs during a flush or a snapshot: fewer of these help",
        ),
        (
            total.missed,
            "missed because too many calls had not returned, or another probe ran on the CPU: \
             fewer functions help",
        ),
    ];
    let reasons: Vec<_> = reasons.iter().filter(|(count, _)| *count > 0).collect();
    if reasons.is_empty() {
        return writeln!(
            out,
            "Events were lost: record fewer (-e, -x), or use a larger buffer \
             (`rtrace record -b SIZExN`)"
        );
    }
    reasons
        .iter()
        .try_for_each(|(_, why)| writeln!(out, "Events were {why}"))
}

/// Returns the closing line.
pub fn totals(losses: &Losses) -> String {
    let totals = Totals {
        recorded: losses.recorded,
        lost: losses.lost,
    };
    if losses.lost_is_exact {
        return totals.to_string();
    }
    let mut text = totals.to_string();
    let packets = losses.packets_lost.saturating_add(losses.packets_before);
    if packets > 0 {
        text += &format!(" and the events in {packets} lost packets");
    }
    if !losses.damages.is_empty() {
        text += &format!(" and the events in {}", losses.damages);
    }
    if losses.missing > 0 {
        text += &format!(", {} missing", losses.missing);
    }
    text
}

/// Writes that the figures are lower bounds, because the trace has losses.
pub fn lower_bounds(out: &mut String) -> Result {
    writeln!(
        out,
        "\nThese figures are lower bounds: events are missing, and times across such a gap are not counted."
    )
}

/// Writes a table: a heading, and a line for each of the first `rows` of `items`.
pub fn table<T>(
    out: &mut String,
    heading: &str,
    items: &[T],
    rows: usize,
    line: impl Fn(&T) -> String,
) -> Result {
    writeln!(out, "\n{HEADING}{heading}{HEADING:#}")?;
    for item in items.iter().take(rows) {
        writeln!(out, "{}", line(item).trim_end())?;
    }
    Ok(())
}

/// Formats a time in nanoseconds. Returns a dash if it is not known.
pub fn or_dash(nanoseconds: Option<u64>) -> String {
    nanoseconds.map_or_else(|| "-".to_owned(), duration)
}

/// Formats a value. Returns a question mark if it is not known.
pub fn or_unknown(value: Option<impl Display>) -> String {
    value.map_or_else(|| "?".to_owned(), |value| value.to_string())
}

/// Writes the number of rows that a table of `all` rows does not show.
pub fn more(out: &mut String, all: usize, rows: usize, what: &str) -> Result {
    match all.saturating_sub(rows) {
        0 => Ok(()),
        left => writeln!(out, "{:>14}         more {what} (-n 0 shows all)", left),
    }
}

/// Formats a part in percent.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    format!("{:.1}%", part as f64 * 100.0 / whole as f64)
}
