// SPDX-License-Identifier: GPL-2.0

//! `rtrace mark`.

use crate::args::MarkArgs;
use record::place::Place;

/// Records a text in the session that was given, or without one in all active sessions.
pub fn mark(place: &Place, args: &MarkArgs) -> anyhow::Result<()> {
    let text = args.text.join(" ");
    match &place.session {
        Some(_) => place.session()?.mark(&text)?,
        None => place.tracer()?.mark(&text)?,
    }
    Ok(())
}
