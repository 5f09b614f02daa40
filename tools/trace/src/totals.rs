// SPDX-License-Identifier: GPL-2.0

//! The closing line of every run.

use serde::Serialize;
use std::fmt;

/// What a trace holds and what it lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Events recorded.
    pub recorded: u64,
    /// Events that fired and are not in the trace.
    pub lost: u64,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} events recorded, {} lost", self.recorded, self.lost)
    }
}
