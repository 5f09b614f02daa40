// SPDX-License-Identifier: GPL-2.0

//! `rtrace status`: prints the state of the session.

use crate::schema::Schema;
use consumer::stats::{Counters, TraceStats};
use control::{EventFilter, Settings, TaskSet, Waiting, FIRST_CHANNEL};
use record::place::Place;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use terminal::{bytes, print, HEADING};

/// Maximum number of items shown of a list.
const SHOWN: usize = 8;

/// The printed state.
#[derive(JsonSchema, Serialize)]
pub struct Status {
    version: String,
    session: String,
    active: bool,
    trace: Option<String>,
    clock: String,
    tasks: Vec<u32>,
    tasks_excluded: Vec<u32>,
    tasks_followed: bool,
    cgroups: Vec<String>,
    marker_channel: String,
    triggers: Vec<String>,
    channels: Vec<ChannelStatus>,
    events_available: usize,
    waiting: Vec<Waiting>,
    stats: TraceStats,
}

/// A channel.
#[derive(JsonSchema, Serialize)]
struct ChannelStatus {
    name: String,
    settings: Settings,
    aux_size: u64,
    snapshot_memory: String,
    barrier: String,
    events_enabled: usize,
    filters: Vec<EventFilter>,
    contexts: Vec<String>,
    cpus: String,
}

/// Prints the session's state.
pub fn status(place: &Place, json: bool) -> anyhow::Result<()> {
    let session = place.session()?;
    let tracer = session.tracer();
    let trace = session.uuid()?;
    let mut channels = Vec::new();
    for channel in session.channels()? {
        channels.push(ChannelStatus {
            name: channel.name().to_owned(),
            settings: channel.settings()?,
            aux_size: channel.aux_size()?,
            snapshot_memory: channel.text("snapshot_memory")?,
            barrier: channel.text("barrier")?,
            events_enabled: channel.enabled_events()?.len(),
            filters: channel.filters()?,
            contexts: channel.contexts()?,
            cpus: channel.cpus()?,
        });
    }
    let status = Status {
        version: tracer.version()?,
        session: session.name().to_owned(),
        active: session.is_active()?,
        trace: trace.map(|uuid| uuid.to_string()),
        clock: session.clock()?,
        tasks: session.tasks(TaskSet::Only)?,
        tasks_excluded: session.tasks(TaskSet::Not)?,
        tasks_followed: session.follows_tasks()?,
        cgroups: session.cgroups()?,
        marker_channel: session.marker_channel()?,
        triggers: session.triggers()?,
        channels,
        events_available: tracer.available_events()?.len(),
        waiting: tracer.waiting()?,
        stats: if trace.is_some() {
            session.stats()?
        } else {
            TraceStats::default()
        },
    };
    if json {
        return Schema::Status.print(&status, None);
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
    let followed = if status.tasks_followed {
        ", and what they start"
    } else {
        ""
    };
    if !status.tasks.is_empty() {
        writeln!(out, "tasks    only {}{followed}", short(&status.tasks))?;
    }
    if !status.tasks_excluded.is_empty() {
        let tasks = short(&status.tasks_excluded);
        writeln!(out, "tasks    not {tasks}{followed}")?;
    }
    if !status.cgroups.is_empty() {
        writeln!(out, "cgroups  only {}", short(&status.cgroups))?;
    }
    if status.marker_channel != FIRST_CHANNEL {
        // The value is `none`, or the name of a channel.
        writeln!(out, "markers  in {}", status.marker_channel)?;
    }
    for trigger in &status.triggers {
        writeln!(out, "trigger  {trigger}")?;
    }
    if !status.waiting.is_empty() {
        let tasks: Vec<_> = status.waiting.iter().map(Waiting::to_string).collect();
        let tasks = short(&tasks);
        writeln!(
            out,
            "waiting  {tasks}: in a probe, for memory of the task; rmmod is refused meanwhile"
        )?;
    }
    for channel in &status.channels {
        let ChannelStatus { name, settings, .. } = channel;
        if status.channels.len() > 1 {
            writeln!(out, "\nchannel  {name}")?;
        }
        writeln!(
            out,
            "buffers  {} per CPU, {} mode",
            settings.size,
            settings.mode.name()
        )?;
        if channel.aux_size != 0 {
            writeln!(out, "areas    {} per CPU (AUX)", bytes(channel.aux_size))?;
        }
        if channel.snapshot_memory != "free" {
            writeln!(out, "snapshot {} memory", channel.snapshot_memory)?;
        }
        if channel.barrier != "auto" {
            writeln!(out, "barrier  {}", channel.barrier)?;
        }
        writeln!(
            out,
            "events   {} of {} enabled",
            channel.events_enabled, status.events_available
        )?;
        // A pattern with a filter gives the same filter to many events.
        let filters = channel
            .filters
            .chunk_by(|a, b| a.expression == b.expression);
        for same in filters {
            let events: Vec<_> = same.iter().map(|filter| filter.event.as_str()).collect();
            let expression = same.first().map_or("", |filter| &filter.expression);
            writeln!(out, "filter   {expression} ({})", short(&events))?;
        }
        if !channel.contexts.is_empty() {
            writeln!(out, "contexts {}", channel.contexts.join(", "))?;
        }
        if channel.cpus != "all" {
            writeln!(out, "CPUs     only {}", channel.cpus)?;
        }
    }
    let total = status.stats.all.total;
    if !status.stats.all.cpus.is_empty() {
        let cpus = status.stats.all.cpus.iter();
        let cpus = cpus.map(|row| (row.cpu.to_string(), row.counters));
        table(&mut out, "CPU", cpus.chain([("total".to_owned(), total)]))?;
        if status.stats.channels.len() > 1 {
            let channels = status.stats.channels.iter();
            let channels = channels.map(|row| (row.channel.clone(), row.stats.total));
            table(&mut out, "channel", channels)?;
        }
        writeln!(out)?;
    }
    writeln!(out, "{}", total.totals())?;
    Ok(out)
}

/// The items of a list, without the end if the list is long.
fn short(list: &[impl ToString]) -> String {
    let (shown, rest) = list.split_at(list.len().min(SHOWN));
    let shown: Vec<_> = shown.iter().map(ToString::to_string).collect();
    let shown = shown.join(", ");
    match rest.len() {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Writes counters, one row for each name.
fn table(
    out: &mut String,
    what: &str,
    rows: impl Iterator<Item = (String, Counters)>,
) -> std::fmt::Result {
    let rows: Vec<_> = rows.collect();
    let names = rows.iter().map(|(name, _)| name.len());
    let width = names.max().unwrap_or(0).max(5);
    writeln!(
        out,
        "\n{HEADING}{what:>width$} {:>12} {:>12} {:>12} {:>10} {:>10} {:>12}{HEADING:#}",
        "recorded", "overwritten", "discarded", "packets", "read", "bytes"
    )?;
    for (name, row) in rows {
        writeln!(
            out,
            "{name:>width$} {:>12} {:>12} {:>12} {:>10} {:>10} {:>12}",
            row.recorded,
            row.overwritten,
            row.discarded(),
            row.packets,
            row.read_packets,
            bytes(row.bytes)
        )?;
    }
    Ok(())
}
