// SPDX-License-Identifier: GPL-2.0

//! `rtrace snapshot`: what the buffers hold at this moment.

use crate::options::Place;
use crate::terminal::{bytes, say};
use anyhow::bail;
use std::path::Path;
use trace::consumer::Consumer;
use trace::live::LiveTrace;
use trace::output::{Output, OutputOptions};
use trace::recording::State;
use trace::session::Session;
use trace::source::Source;
use trace::totals::Totals;

/// Writes a snapshot to `dir`.
pub fn snapshot(place: &Place, dir: &Path, options: OutputOptions) -> anyhow::Result<()> {
    take(&place.session()?, dir, options)
}

/// Writes a snapshot of a session to `dir`.
pub fn take(session: &Session, dir: &Path, options: OutputOptions) -> anyhow::Result<()> {
    if Output::held(dir)?.is_some() {
        bail!(
            "{} holds a trace already: choose a new directory",
            dir.display()
        );
    }
    let mut consumer = Consumer::open(LiveTrace::open(session)?, |source| {
        options.begin(dir, source.uuid(), &source.streams()?)
    })?;
    let result = consumer.snapshot();
    let written = consumer.written();
    say(format_args!(
        "snapshot in {} ({}, {} packets)",
        dir.display(),
        bytes(written.bytes),
        written.packets
    ));
    let (stats, text) = session.stats_and_text()?;
    let state = if result.is_ok() {
        State::Stopped
    } else {
        State::Failed
    };
    if let Err(error) = consumer.into_sink().end(state, 0, &text) {
        say(error);
    }
    say(Totals {
        recorded: written.records,
        lost: stats.all.total.lost(),
    });
    Ok(result?)
}
