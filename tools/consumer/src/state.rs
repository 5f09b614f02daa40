// SPDX-License-Identifier: GPL-2.0

//! The state of a recording.

use schemars::JsonSchema;
use serde::Serialize;

/// State of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The recording continues, or the process that wrote the trace was killed.
    Writing,
    /// The trace was over and all of it was read.
    Over,
    /// The recording ended before the trace: by a signal, as a snapshot, or because the next chunk began.
    Stopped,
    /// The recording ended because of an error in reading or writing.
    Failed,
}

impl State {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Writing, Self::Over, Self::Stopped, Self::Failed];

    /// Its name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Writing => "writing",
            Self::Over => "over",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        }
    }
}
