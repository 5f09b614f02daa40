// SPDX-License-Identifier: GPL-2.0

//! `rtrace start` and `rtrace stop`.

use crate::advice;
use crate::options::{Place, Setup};
use crate::setup::{self, Earlier};
use crate::terminal::say;
use anyhow::bail;
use trace::settings::Mode;
use trace::tracer::Tracer;

/// Starts a new trace.
pub fn start(place: &Place, options: &Setup) -> anyhow::Result<()> {
    let session = Tracer::find(&place.debugfs)?.session(&place.session)?;
    if session.is_active()? {
        bail!(
            "session `{}` records already (EBUSY): `rtrace stop` ends it",
            session.name()
        );
    }
    let earlier = Earlier::note(&session)?;
    setup::apply(&session, options)?;
    session.start()?;
    earlier.forget();
    let settings = session.settings()?;
    say(format_args!(
        "session `{}` records {} events, {} mode, {} per CPU",
        session.name(),
        session.tracer().enabled_events()?.len(),
        settings.mode.name(),
        settings.size
    ));
    Ok(())
}

/// Ends the trace.
pub fn stop(place: &Place) -> anyhow::Result<()> {
    let session = Tracer::find(&place.debugfs)?.session(&place.session)?;
    if !session.is_active()? {
        bail!("session `{}` does not record", session.name());
    }
    session.stop()?;
    let (stats, settings) = (session.stats()?, session.settings()?);
    for line in advice::on_loss(&stats, settings.size, settings.mode == Mode::Overwrite) {
        say(line);
    }
    if stats.total.unread() > 0 {
        say(format_args!(
            "{} events are still in the buffers, for rtraced or `rtrace snapshot -o DIR`",
            stats.total.unread()
        ));
    }
    say(stats.total.totals());
    Ok(())
}
