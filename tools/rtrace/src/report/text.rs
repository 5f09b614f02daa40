// SPDX-License-Identifier: GPL-2.0

//! The summary for people.

use super::summary::Summary;
use crate::date;
use crate::terminal::{bytes, duration, HEADING};
use std::fmt::{Result, Write};
use trace::recording::State;
use trace::totals::Totals;

/// Renders a summary with at most `rows` rows in a table.
pub fn render(summary: &Summary, rows: usize) -> std::result::Result<String, std::fmt::Error> {
    let mut out = String::new();
    head(&mut out, summary)?;
    events(&mut out, summary, rows)?;
    cpus(&mut out, summary)?;
    channels(&mut out, summary)?;
    tasks(&mut out, summary, rows)?;
    close(&mut out, summary)?;
    Ok(out)
}

fn head(out: &mut String, summary: &Summary) -> Result {
    let env = |key: &str| summary.env.get(key).map_or("?", String::as_str);
    writeln!(out, "trace     {}", summary.trace)?;
    writeln!(
        out,
        "machine   {}, Linux {}",
        env("hostname"),
        env("kernel_release")
    )?;
    let begin = summary.begin_ns.map(date::readable);
    writeln!(
        out,
        "begin     {}",
        begin.as_deref().unwrap_or("unknown: it has no packet")
    )?;
    writeln!(out, "duration  {}", duration(summary.duration_ns))?;
    writeln!(
        out,
        "size      {}, {} packets",
        bytes(summary.bytes),
        summary.packets
    )
}

fn events(out: &mut String, summary: &Summary, rows: usize) -> Result {
    writeln!(
        out,
        "\n{HEADING}{:>14} {:>6}  event{HEADING:#}",
        "count", "share"
    )?;
    for event in summary.events.iter().take(rows) {
        let share = percent(event.count, summary.recorded);
        write!(out, "{:>14} {share:>6}  {}", event.count, event.name)?;
        if summary.channels.len() > 1 {
            write!(out, " ({})", event.channel)?;
        }
        writeln!(out)?;
    }
    more(out, summary.events.len(), rows, "event types")
}

fn cpus(out: &mut String, summary: &Summary) -> Result {
    writeln!(
        out,
        "\n{HEADING}{:>5} {:>12} {:>10} {:>8} {:>12} {:>6}{HEADING:#}",
        "CPU", "events", "lost", "packets", "bytes", "busy"
    )?;
    for cpu in &summary.cpus {
        writeln!(
            out,
            "{:>5} {:>12} {:>10} {:>8} {:>12} {:>6}",
            cpu.cpu,
            cpu.content.events,
            cpu.content.lost,
            cpu.content.packets,
            bytes(cpu.content.bytes),
            percent(cpu.busy_ns, cpu.busy_ns.saturating_add(cpu.idle_ns))
        )?;
    }
    Ok(())
}

/// Where there are several.
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
    let time = summary.duration_ns;
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
            // A task chooses its own name: no control characters to the terminal.
            task.comm.replace(char::is_control, "?")
        )?;
    }
    more(out, summary.tasks.len(), rows, "tasks")
}

fn close(out: &mut String, summary: &Summary) -> Result {
    writeln!(out)?;
    let part = summary.recording.as_ref().and_then(|r| r.part.as_ref());
    if let Some(part) = part.filter(|part| part.chunk > 1) {
        writeln!(
            out,
            "A trace from its chunk {} on: what came before is in the chunks before it",
            part.chunk
        )?;
    } else if summary.packets_before > 0 {
        writeln!(
            out,
            "The newest part of a trace: {} packets before it were overwritten, or read earlier",
            summary.packets_before
        )?;
    }
    if summary.packets_lost > 0 {
        writeln!(
            out,
            "{} packets were overwritten before they were read: a larger buffer keeps more \
             (`rtrace record -b SIZExN`)",
            summary.packets_lost
        )?;
    }
    if summary.lost > 0 {
        writeln!(
            out,
            "Events were lost: record fewer (-e, -x), or use a larger buffer \
             (`rtrace record -b SIZExN`)"
        )?;
    }
    match summary.recording.as_ref().map(|recording| recording.state) {
        Some(State::Writing) => writeln!(
            out,
            "Unfinished: it is still being written, or who wrote it was killed. Only the losses that \
             its packets tell of are known"
        )?,
        Some(State::Failed) => writeln!(
            out,
            "Unfinished: its recording failed before the end, and what came later is not in it"
        )?,
        Some(State::Over | State::Stopped) | None => {}
    }
    let totals = Totals {
        recorded: summary.recorded,
        lost: summary.lost,
    };
    if summary.lost_is_exact {
        writeln!(out, "{totals}")
    } else {
        let packets = summary.packets_lost.saturating_add(summary.packets_before);
        writeln!(out, "{totals} and what was in {packets} lost packets")
    }
}

fn more(out: &mut String, all: usize, rows: usize, what: &str) -> Result {
    match all.saturating_sub(rows) {
        0 => Ok(()),
        left => writeln!(out, "{:>14}         more {what} (-n 0 shows all)", left),
    }
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    format!("{:.1}%", part as f64 * 100.0 / whole as f64)
}
