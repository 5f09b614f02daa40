// SPDX-License-Identifier: GPL-2.0

//! The head of every report, which identifies the trace.

use super::choice::Chosen;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use store::Trace;

/// Identity, time and size of a trace.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Head {
    /// Directory of the trace.
    pub trace: String,
    /// UUID of the trace.
    pub uuid: String,
    /// Environment: machine, kernel, tracer.
    pub env: BTreeMap<String, String>,
    /// Begin of the first packet, in nanoseconds since the epoch; `None` without a packet.
    pub begin_ns: Option<i128>,
    /// Time from there to the end of the last packet.
    pub duration_ns: u64,
    /// Bytes of the stream files.
    pub bytes: u64,
    /// Number of complete packets.
    pub packets: u64,
}

/// Time range of a trace by its packets, in clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Begin and end; `None` before the first packet.
    known: Option<(u64, u64)>,
}

impl Extent {
    /// Adds the range of one or several packets, from `begin` to `end`.
    pub fn add(&mut self, begin: u64, end: u64) {
        let (first, last) = self.known.unwrap_or((begin, end));
        self.known = Some((first.min(begin), last.max(end)));
    }

    /// Returns the chosen part.
    pub fn part(self, chosen: &Chosen) -> Self {
        Self {
            known: self.known.map(|range| chosen.clip(range)),
        }
    }

    /// Returns the begin of the first packet; 0 if there is none.
    pub fn begin(&self) -> u64 {
        self.known.map_or(0, |(begin, _)| begin)
    }

    /// Returns the end of the last packet; 0 if there is none.
    pub fn end(&self) -> u64 {
        self.known.map_or(0, |(_, end)| end)
    }

    /// Returns the time from the begin of the first packet to the end of the last packet.
    pub fn ticks(&self) -> u64 {
        self.known
            .map_or(0, |(begin, end)| end.saturating_sub(begin))
    }
}

impl Head {
    /// Creates the head of the trace in `dir`, after its packets were read.
    pub fn new(dir: &Path, trace: &Trace, extent: Extent, packets: u64) -> Self {
        let clock = trace.metadata.clock;
        Self {
            trace: dir.display().to_string(),
            uuid: trace.metadata.uuid.to_string(),
            env: trace.metadata.env.clone(),
            begin_ns: extent.known.map(|(begin, _)| clock.since_epoch(begin)),
            duration_ns: clock.nanoseconds(extent.ticks()),
            bytes: trace.bytes,
            packets,
        }
    }
}
