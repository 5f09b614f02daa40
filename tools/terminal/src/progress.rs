// SPDX-License-Identifier: GPL-2.0

//! How far a trace has been read, for people.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::{stderr, IsTerminal};

/// Below this a trace is read before a progress bar is of use.
const LARGE: u64 = 128 << 20;

/// A bar for reading a trace of this many bytes: hidden where it is of no use.
pub fn reading(bytes: u64) -> anyhow::Result<ProgressBar> {
    if bytes < LARGE || !stderr().is_terminal() {
        return Ok(ProgressBar::hidden());
    }
    let style = ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}, {eta} to go")?;
    Ok(ProgressBar::new(bytes).with_style(style))
}
