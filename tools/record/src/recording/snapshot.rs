// SPDX-License-Identifier: GPL-2.0

//! A snapshot: the contents of a session's buffers at this moment.

use control::snapshot::{self, Snapshot};
use control::Session;
use std::path::Path;
use store::OutputOptions;
use terminal::{bytes, conclude, say, tell};

/// Writes a snapshot of a session to `dir`.
pub fn take(session: &Session, dir: &Path, options: OutputOptions) -> anyhow::Result<()> {
    let Snapshot {
        written,
        totals,
        exposed,
        failure,
    } = snapshot::take(session, dir, options)?;
    tell(format_args!(
        "snapshot in {} ({}, {} packets)",
        dir.display(),
        bytes(written.bytes),
        written.packets
    ));
    if let Some(totals) = totals {
        conclude(totals.lost == 0, totals);
    }
    if let Some(exposed) = exposed {
        say(exposed);
    }
    failure.map_or(Ok(()), |error| Err(error.into()))
}
