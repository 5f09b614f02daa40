// SPDX-License-Identifier: GPL-2.0

//! `rtrace report`: what a trace holds.

mod busy;
mod summary;
mod text;

use crate::terminal::{print, say};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{stderr, IsTerminal};
use std::path::Path;
use summary::Summary;
use trace::ctf::Trace;

/// Below this a trace is read before a progress bar is of use.
const LARGE: u64 = 128 << 20;

/// Prints the summary of the trace in `dir`, with at most `rows` rows in a table.
pub fn report(dir: &Path, json: bool, rows: usize) -> anyhow::Result<()> {
    let trace = Trace::open(dir)?;
    let bar = if trace.bytes >= LARGE && stderr().is_terminal() {
        ProgressBar::new(trace.bytes).with_style(ProgressStyle::with_template(
            "{bar:40} {bytes} of {total_bytes}, {eta} to go",
        )?)
    } else {
        ProgressBar::hidden()
    };
    let summary = Summary::of(dir, &trace, |bytes| bar.inc(bytes));
    bar.finish_and_clear();
    let summary = summary?;
    for warning in &summary.warnings {
        say(warning);
    }
    let text = if json {
        format!("{}\n", serde_json::to_string_pretty(&summary)?)
    } else {
        text::render(&summary, rows)?
    };
    Ok(print(&text)?)
}
