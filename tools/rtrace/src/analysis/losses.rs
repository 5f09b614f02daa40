// SPDX-License-Identifier: GPL-2.0

//! What every report ends with: how many events were recorded, and how many lost.

use super::summary::Content;
use serde::Serialize;
use trace::recording::Recording;

/// What became of a trace's events.
#[derive(Debug, Serialize)]
pub struct Losses {
    /// Events recorded: those in the trace.
    pub recorded: u64,
    /// Events lost: by the kernel's counters, where they stand beside the trace, else those
    /// that packets tell of.
    pub lost: u64,
    /// Whether `lost` is all; else what was in `packets_lost` and `packets_before` is lost as well.
    pub lost_is_exact: bool,
    /// How the recording ended; none if no tool of rtrace wrote the trace, or one that is old.
    pub recording: Option<Recording>,
    /// Packets missing between others: overwritten before they were read.
    pub packets_lost: u64,
    /// Packets missing before the first: overwritten by a flight recorder, or read earlier.
    pub packets_before: u64,
}

impl Losses {
    /// Of a trace that holds all this, and whose recording ended so.
    pub fn new(all: &Content, recording: Option<&Recording>) -> Self {
        let gaps = all.packets_lost.saturating_add(all.packets_before);
        let totals = recording.and_then(|recording| recording.totals(all.events));
        Self {
            recorded: all.events,
            lost: totals.map_or(all.lost, |totals| totals.lost),
            lost_is_exact: totals.is_some() || gaps == 0,
            recording: recording.cloned(),
            packets_lost: all.packets_lost,
            packets_before: all.packets_before,
        }
    }
}
