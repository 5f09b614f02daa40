// SPDX-License-Identifier: GPL-2.0

//! A session's settings: changed for a trace, and put back after it.

use crate::channels::{ChannelSetup, Origin};
use crate::events;
use crate::options::Setup;
use crate::terminal::say;
use anyhow::bail;
use std::{mem, slice};
use trace::channel::Channel;
use trace::session::Session;
use trace::settings::Settings;
use trace::Result;

/// Patterns were given, and no event is left: recording the default events is not what was
/// asked for.
#[derive(Debug, thiserror::Error)]
#[error("no event is left to record: all that were chosen are excluded")]
pub struct NothingChosen;

/// Changes what `setup` gives. On failure a part may have been changed; see [`Earlier`].
pub fn apply(session: &Session, setup: &Setup) -> anyhow::Result<()> {
    if let Some(clock) = &setup.clock {
        session.set_clock(clock)?;
    }
    for channel in &setup.channels {
        apply_to(session, channel)?;
    }
    Ok(())
}

fn apply_to(session: &Session, setup: &ChannelSetup) -> anyhow::Result<()> {
    let channels = session.channels()?.into_iter();
    let channel = match channels
        .into_iter()
        .find(|known| known.name() == setup.name)
    {
        Some(known) => known,
        None => session.create_channel(&setup.name)?,
    };
    if setup.mode.is_some() || setup.size.is_some() {
        let now = channel.settings()?;
        channel.apply(&Settings {
            mode: setup.mode.unwrap_or(now.mode),
            size: setup.size.unwrap_or(now.size),
        })?;
    }
    match &setup.events {
        Some(patterns) => choose(session, &channel, patterns, setup.origin.as_ref()),
        None => Ok(()),
    }
}

/// Enables what `patterns` say; nothing, if there are none.
fn choose(
    session: &Session,
    channel: &Channel,
    patterns: &[String],
    origin: Option<&Origin>,
) -> anyhow::Result<()> {
    if let Err(refused) = channel.set_events(patterns) {
        let available = events::available(session.tracer())?;
        if let Some(origin) = origin {
            for (word, line) in &origin.lines {
                if let Some(complaint) = events::unmatched(&available, slice::from_ref(word)) {
                    bail!("{}:{line}: {complaint}", origin.file);
                }
            }
        }
        let complaint = events::unmatched(&available, patterns);
        return Err(complaint.map_or_else(|| refused.into(), anyhow::Error::msg));
    }
    if !patterns.is_empty() && channel.enabled_events()?.is_empty() {
        return Err(NothingChosen.into());
    }
    Ok(())
}

/// The settings as they were. Dropping it puts them back.
pub struct Earlier<'a> {
    session: &'a Session,
    events: Vec<String>,
    settings: Settings,
    clock: String,
}

impl<'a> Earlier<'a> {
    /// Notes the settings of a session that is not active.
    pub fn note(session: &'a Session) -> Result<Self> {
        let channel = session.first_channel();
        Ok(Self {
            session,
            events: channel.enabled_events()?,
            settings: channel.settings()?,
            clock: session.clock()?,
        })
    }

    /// Leaves the settings as they are now.
    pub fn forget(self) {
        mem::forget(self);
    }

    fn put_back(&self) -> Result<()> {
        let (session, channel) = (self.session, self.session.first_channel());
        let events = channel.set_events(&self.events);
        let settings = channel.apply(&self.settings);
        let clock = if session.clock()? == self.clock {
            Ok(())
        } else {
            session.set_clock(&self.clock)
        };
        events.and(settings).and(clock)
    }
}

impl Drop for Earlier<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.put_back() {
            say(format_args!(
                "the earlier settings could not be put back: {error}"
            ));
        }
    }
}
