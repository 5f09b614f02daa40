// SPDX-License-Identifier: GPL-2.0

//! What every report begins with: which trace it is about.

use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use store::Trace;

/// A trace: what it is, when it was, how large.
#[derive(Debug, Serialize)]
pub struct Head {
    /// Its directory.
    pub trace: String,
    /// Its identity.
    pub uuid: String,
    /// Its environment: machine, kernel, tracer.
    pub env: BTreeMap<String, String>,
    /// When its first packet began, nanoseconds since the epoch; none without a packet.
    pub begin_ns: Option<i128>,
    /// From there to its last packet's end.
    pub duration_ns: u64,
    /// Bytes of the stream files.
    pub bytes: u64,
    /// Whole packets.
    pub packets: u64,
}

/// The time of a trace by its packets, in clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Begin and end, once there was a packet.
    known: Option<(u64, u64)>,
}

impl Extent {
    /// A packet, or several, from `begin` to `end`.
    pub fn add(&mut self, begin: u64, end: u64) {
        let (first, last) = self.known.unwrap_or((begin, end));
        self.known = Some((first.min(begin), last.max(end)));
    }

    /// The first packet's begin; 0 if there is none.
    pub fn begin(&self) -> u64 {
        self.known.map_or(0, |(begin, _)| begin)
    }

    /// The last packet's end; 0 if there is none.
    pub fn end(&self) -> u64 {
        self.known.map_or(0, |(_, end)| end)
    }

    /// From the first packet's begin to the last one's end.
    pub fn ticks(&self) -> u64 {
        self.known
            .map_or(0, |(begin, end)| end.saturating_sub(begin))
    }
}

impl Head {
    /// Of the trace in `dir`, whose packets were read.
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
