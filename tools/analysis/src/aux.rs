// SPDX-License-Identifier: GPL-2.0

//! Report of the data that other modules recorded beside the events, chunk by chunk (`--aux`).

use super::text::{more, table};
use super::{bits, key, Analysis, Answer, Catalogue, EventKey, Missing, Moment};
use ctf::{Areas, Event, EventLayout};
use rtrace_abi::aux::flags::TRUNCATED;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::path::Path;
use terminal::{printable, say};

/// A chunk, as its event describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// CPU whose area contains the chunk.
    pub cpu: u32,
    /// Position of the first byte in the CPU's stream.
    pub position: u64,
    /// Size in bytes.
    pub size: u64,
    /// Bytes lost before the chunk because the area was full.
    pub lost: u64,
    /// Bits of `rtrace_abi::aux::flags`.
    pub flags: u64,
}

impl Chunk {
    /// Reads the chunk of an event. Returns `None` if the event describes no chunk.
    pub fn of(event: &Event<'_>) -> Option<Self> {
        let value = |name: &str| bits(event.value(event.layout.field(name)?));
        Some(Self {
            cpu: value("aux_cpu")?.try_into().ok()?,
            position: value("aux_offset")?,
            size: value("aux_size")?,
            lost: value("aux_lost")?,
            flags: value("aux_flags")?,
        })
    }

    /// Returns whether events of this layout describe chunks.
    pub fn is(layout: &EventLayout) -> bool {
        let mut fields = rtrace_abi::aux::FIELDS.iter();
        fields.all(|field| layout.field(field.name).is_some())
    }
}

/// Returns the events that describe chunks. If the trace has none, returns an error.
pub fn events<'a>(
    catalogue: &Catalogue<'a>,
    option: &'static str,
) -> Result<Vec<&'a EventLayout>, Missing> {
    let classes = catalogue.metadata().streams.iter();
    let layouts = classes.flat_map(|class| class.events.values());
    let events: Vec<_> = layouts.filter(|layout| Chunk::is(layout)).collect();
    match events.is_empty() {
        false => Ok(events),
        true => Err(Missing {
            option,
            events: "events of AUX areas",
            record: "--aux-size 1M -e EVENT".into(),
        }),
    }
}

/// Analysis of the chunks of a trace.
pub struct Aux {
    events: Vec<EventKey>,
    areas: Areas,
    rows: BTreeMap<(u32, u32, String), Row>,
}

/// Chunks of one event on one CPU.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
struct Row {
    event: String,
    cpu: u32,
    chunks: u64,
    bytes: u64,
    /// Chunks with data missing inside or before them.
    truncated: u64,
    /// Bytes lost because the area was full.
    lost: u64,
    /// Bytes of the chunks that are absent from the trace.
    missing: u64,
}

impl Aux {
    /// Creates the analysis for the trace in `dir`, which has these events.
    pub fn new(catalogue: &Catalogue<'_>, dir: &Path) -> Result<Self, Missing> {
        let events = events(catalogue, "--aux")?.into_iter().map(key).collect();
        let areas = store::areas(dir, catalogue.metadata().uuid).unwrap_or_else(|error| {
            say(format_args!("the AUX areas cannot be read: {error}"));
            Areas::default()
        });
        areas.damages.iter().for_each(say);
        Ok(Self {
            events,
            areas,
            rows: BTreeMap::new(),
        })
    }
}

impl Analysis for Aux {
    fn events(&self) -> Vec<EventKey> {
        self.events.clone()
    }

    fn event(&mut self, _which: usize, event: &Event<'_>, _now: &Moment<'_>) {
        let Some(chunk) = Chunk::of(event) else {
            return;
        };
        let class = event.layout.stream_id;
        let area = self.areas.of(class, chunk.cpu);
        let there = area.map_or(0, |area| area.has(chunk.position, chunk.size));
        let name = event.layout.name.clone();
        let row = self.rows.entry((class, chunk.cpu, name.clone()));
        let row = row.or_insert_with(|| Row {
            event: name,
            cpu: chunk.cpu,
            ..Row::default()
        });
        row.chunks += 1;
        row.bytes = row.bytes.saturating_add(chunk.size);
        row.truncated += u64::from(chunk.flags & TRUNCATED != 0);
        row.lost = row.lost.saturating_add(chunk.lost);
        row.missing = row.missing.saturating_add(chunk.size - there);
    }

    fn answer(self: Box<Self>, _ticks: u64) -> Box<dyn Answer> {
        let mut rows: Vec<_> = self.rows.into_iter().collect();
        for same in rows.chunk_by_mut(|((a, b, _), _), ((c, d, _), _)| (a, b) == (c, d)) {
            let told = same.iter().map(|(_, row)| row.lost);
            let told = told.fold(0, u64::saturating_add);
            if let Some(((class, cpu, _), last)) = same.last_mut() {
                // No event reports the bytes lost after the last chunk.
                let all = self.areas.of(*class, *cpu).map_or(0, |area| area.lost());
                last.lost += all.saturating_sub(told);
            }
        }
        let areas = rows.into_iter().map(|(_, row)| row).collect();
        Box::new(AuxAnswer { areas })
    }
}

/// Answer to `--aux`.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct AuxAnswer {
    areas: Vec<Row>,
}

impl Answer for AuxAnswer {
    fn name(&self) -> &'static str {
        "aux"
    }

    fn json(&self) -> serde_json::Result<Json> {
        serde_json::to_value(self)
    }

    fn text(&self, out: &mut String, rows: usize) -> fmt::Result {
        if self.areas.is_empty() {
            return writeln!(out, "\nThe trace has no chunks.");
        }
        let heading = format!(
            "{:>10} {:>14} {:>10} {:>14} {:>14} {:>5}  event",
            "chunks", "bytes", "truncated", "lost", "not here", "cpu"
        );
        table(out, &heading, &self.areas, rows, |row| {
            format!(
                "{:>10} {:>14} {:>10} {:>14} {:>14} {:>5}  {}",
                row.chunks,
                row.bytes,
                row.truncated,
                row.lost,
                row.missing,
                row.cpu,
                printable(&row.event)
            )
        })?;
        more(out, self.areas.len(), rows, "areas")?;
        writeln!(
            out,
            "\nBytes that found no space are lost. Bytes that are not here were overwritten, or not written beside the trace."
        )
    }
}
