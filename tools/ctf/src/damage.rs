// SPDX-License-Identifier: GPL-2.0

//! A place of a trace that cannot be read.

use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

/// Bytes of a trace's file that contradict the format, or that the disk does not give.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Damage {
    /// The file.
    #[serde(rename = "file")]
    pub path: PathBuf,
    /// Offset of the first such byte.
    pub offset: u64,
    /// Number of bytes that the reader skips.
    pub bytes: u64,
    /// The reason.
    pub what: String,
}

impl Display for Damage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            offset,
            bytes,
            what,
        } = self;
        let path = path.display();
        write!(
            f,
            "{path}: at byte {offset}: {what}; damaged: {bytes} bytes are left out"
        )
    }
}
