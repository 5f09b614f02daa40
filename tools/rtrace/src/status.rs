// SPDX-License-Identifier: GPL-2.0

//! `rtrace status`: the session as it is.

use crate::options::Place;
use crate::terminal::{bytes, print, HEADING};
use serde::Serialize;
use std::fmt::Write;
use trace::settings::Settings;
use trace::stats::Stats;
use trace::tracer::Tracer;

/// What is shown.
#[derive(Serialize)]
struct Status {
    version: String,
    session: String,
    active: bool,
    trace: Option<String>,
    clock: String,
    settings: Settings,
    events_enabled: usize,
    events_available: usize,
    stats: Stats,
}

/// Prints the session's state.
pub fn status(place: &Place, json: bool) -> anyhow::Result<()> {
    let tracer = Tracer::find(&place.debugfs)?;
    let session = tracer.session(&place.session)?;
    let trace = session.uuid()?;
    let status = Status {
        version: tracer.version()?,
        session: session.name().to_owned(),
        active: session.is_active()?,
        trace: trace.map(|uuid| uuid.to_string()),
        clock: tracer.clock()?,
        settings: session.settings()?,
        events_enabled: tracer.enabled_events()?.len(),
        events_available: tracer.available_events()?.len(),
        stats: if trace.is_some() {
            session.stats()?
        } else {
            Stats::default()
        },
    };
    if json {
        return Ok(print(&format!(
            "{}\n",
            serde_json::to_string_pretty(&status)?
        ))?);
    }
    Ok(print(&text(&status)?)?)
}

fn text(status: &Status) -> Result<String, std::fmt::Error> {
    let mut out = String::new();
    let state = if status.active {
        "recording"
    } else {
        "stopped"
    };
    writeln!(
        out,
        "session  {} ({state}), rtrace {}",
        status.session, status.version
    )?;
    writeln!(
        out,
        "trace    {}",
        status.trace.as_deref().unwrap_or("none yet")
    )?;
    writeln!(out, "clock    {}", status.clock)?;
    writeln!(
        out,
        "buffers  {} per CPU, {} mode",
        status.settings.size,
        status.settings.mode.name()
    )?;
    writeln!(
        out,
        "events   {} of {} enabled",
        status.events_enabled, status.events_available
    )?;
    let total = status.stats.total;
    if !status.stats.cpus.is_empty() {
        writeln!(
            out,
            "\n{HEADING}{:>5} {:>12} {:>12} {:>12} {:>10} {:>10} {:>12}{HEADING:#}",
            "CPU", "recorded", "overwritten", "discarded", "packets", "read", "bytes"
        )?;
        let rows = status
            .stats
            .cpus
            .iter()
            .map(|row| (row.cpu.to_string(), row.counters));
        for (name, row) in rows.chain([("total".to_owned(), total)]) {
            writeln!(
                out,
                "{name:>5} {:>12} {:>12} {:>12} {:>10} {:>10} {:>12}",
                row.recorded,
                row.overwritten,
                row.discarded(),
                row.packets,
                row.read_packets,
                bytes(row.bytes)
            )?;
        }
        writeln!(out)?;
    }
    writeln!(out, "{}", total.totals())?;
    Ok(out)
}
