// SPDX-License-Identifier: GPL-2.0

//! How far a trace has been read, for people.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::{stderr, IsTerminal};
use store::Trace;

/// Below this a trace is read before a progress bar is of use.
const LARGE: u64 = 128 << 20;

/// A bar for reading a trace, in bytes: hidden where it is of no use.
pub fn reading(trace: &Trace) -> anyhow::Result<ProgressBar> {
    if trace.bytes < LARGE || !stderr().is_terminal() {
        return Ok(ProgressBar::hidden());
    }
    let style = ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}, {eta} to go")?;
    Ok(ProgressBar::new(trace.bytes).with_style(style))
}
