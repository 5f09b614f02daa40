// SPDX-License-Identifier: GPL-2.0

//! `rtrace mark`.

use crate::options::Place;

/// Records a text in the session that was given, or without one in all active sessions.
pub fn mark(place: &Place, text: &str) -> anyhow::Result<()> {
    match &place.session {
        Some(_) => place.session()?.mark(text)?,
        None => place.tracer()?.mark(text)?,
    }
    Ok(())
}
