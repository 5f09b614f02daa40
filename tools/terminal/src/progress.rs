// SPDX-License-Identifier: GPL-2.0

//! The progress of reading a trace, for people.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::{stderr, IsTerminal};

/// A smaller trace is read before a progress bar is useful.
const LARGE: u64 = 128 << 20;

/// A bar for reading a trace of this many bytes, hidden if it is not useful.
pub fn reading(bytes: u64) -> anyhow::Result<ProgressBar> {
    if bytes < LARGE || crate::is_quiet() || !stderr().is_terminal() {
        return Ok(ProgressBar::hidden());
    }
    let style = ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}, {eta} to go")?;
    Ok(ProgressBar::new(bytes).with_style(style))
}
