// SPDX-License-Identifier: GPL-2.0

//! `rtrace diff`: what changed between two traces.

use std::path::Path;
use terminal::{harmless_json, print};

/// Prints what changed, with at most `rows` names in a table.
pub fn diff(a: &Path, b: &Path, json: bool, rows: usize) -> anyhow::Result<()> {
    let (compared, verdict) = ::diff::compare(a, b)?;
    let text = match json {
        true => harmless_json(serde_json::to_string_pretty(&compared)? + "\n"),
        false => compared.text(rows)?,
    };
    print(&text)?;
    verdict
}
