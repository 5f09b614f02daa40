// SPDX-License-Identifier: GPL-2.0

//! The text before and after the answers of a report.

use super::head::Head;
use super::loss::Losses;
use super::text::or_unknown;
use consumer::{State, Totals};
use std::fmt::{Result, Write};
use terminal::{bytes, date, duration, printable};

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
