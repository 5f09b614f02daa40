// SPDX-License-Identifier: GPL-2.0

//! The closing line of every run.

use crate::stats::Counters;
use serde::Serialize;
use std::fmt;

/// The number of events that a trace has and lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Events recorded.
    pub recorded: u64,
    /// Events that fired and are not in the trace.
    pub lost: u64,
}

impl Totals {
    /// The totals of a trace with these counters, of which `recorded` events were read. Every event that the kernel
    /// recorded and no file has is lost, too.
    pub fn of(all: &Counters, recorded: u64) -> Self {
        let kept = all.recorded.saturating_sub(all.overwritten);
        Self {
            recorded,
            lost: all.lost().saturating_add(kept.saturating_sub(recorded)),
        }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} events recorded, {} lost", self.recorded, self.lost)
    }
}
