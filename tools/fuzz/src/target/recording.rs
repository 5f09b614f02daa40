// SPDX-License-Identifier: GPL-2.0

//! The `.recording` file of a trace, and that of the next chunk.
//!
//! An accepted text, written again and parsed, gives the same `Recording`; sums do not overflow.

use super::stats::tables;
use consumer::State;
use store::Recording;

pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok((trace, recording)) = Recording::parse(text) else {
        return;
    };
    let lost = recording.totals(0).map(|totals| totals.lost);
    assert!(lost.is_none_or(|lost| lost >= recording.unwritten));
    let both = recording.clone().join(recording.clone());
    assert!(both.unwritten >= recording.unwritten);
    assert_eq!(both.is_from_start(), recording.is_from_start());
    // The end of a line removes one carriage return before it.
    if !trace.ends_with('\r') {
        let again = Recording::parse(&written(&trace, &recording));
        assert_eq!(again, Ok((trace, recording)));
    }
}

fn written(trace: &str, recording: &Recording) -> String {
    let state = match recording.state {
        State::Writing => "writing",
        State::Over => "over",
        State::Stopped => "stopped",
        State::Failed => "failed",
    };
    let part = recording.part.as_ref().map(ToString::to_string);
    format!(
        "trace {trace}\nstate {state}\nunwritten {}\n{}{}",
        recording.unwritten,
        part.unwrap_or_default(),
        recording.stats.as_ref().map(tables).unwrap_or_default(),
    )
}
