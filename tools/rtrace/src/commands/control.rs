// SPDX-License-Identifier: GPL-2.0

//! `rtrace start`, `rtrace stop`, `rtrace session free` and `rtrace session reset`.

use crate::args::settings::{self, add_state, without_probes};
use crate::args::{wrong, StartArgs};
use anyhow::bail;
use control::{LiveTrace, Mode, Session, DEFAULT_SESSION};
use record::place::Place;
use record::session::advice;
use record::session::channels::ChannelSetup;
use record::session::config::Config;
use record::session::earlier::Earlier;
use record::session::patience::{self, Patience};
use record::session::temporary::Temporary;
use record::state;
use system::session::session_option;
use system::Error;
use terminal::{conclude, say, tell};

/// Starts a new trace. With --ensure, creates a missing session, and leaves alone one that records.
pub fn start(place: &Place, args: &StartArgs) -> anyhow::Result<()> {
    let Config { setup, session } = &config(args)?;
    let ensure = args.ensure;
    let tracer = place.tracer()?;
    let name = match (&place.session, session) {
        (None, Some(name)) => name.clone(),
        (name, _) => name.as_deref().unwrap_or(DEFAULT_SESSION).to_owned().into(),
    };
    let mut created = None;
    let session = match tracer.session(&name.value) {
        Err(Error::NoSession { .. }) if ensure => {
            let new = name.used(Temporary::create_to_keep(&tracer, Some(&name.value)))?;
            created.insert(new).session().clone()
        }
        found => name.used(found)?,
    };
    let (name, of) = (session.name(), session_option(session.name()));
    if session.is_active()? {
        if ensure {
            tell(format_args!("session `{name}` is already recording"));
            return Ok(());
        }
        bail!("session `{name}` is already recording (EBUSY): `rtrace{of} stop` ends it");
    }
    if makes_channels(&session, &setup.channels)? && created.is_none() {
        setup.rehearse(&session)?;
    }
    let earlier = match created {
        Some(_) => None,
        None => Some(Earlier::note(&session, &setup.tasks)?),
    };
    setup.apply(&session)?;
    symbols::see_modules();
    patience::start_or_die(&session)?;
    if let Some(earlier) = earlier {
        earlier.forget();
    }
    if let Some(created) = created {
        created.keep();
    }
    if setup.state {
        state::record(&session)?;
    }
    say_started(&session)?;
    let changed = session.changed_settings()?.into_iter();
    // The lines above have the mode.
    let changed = changed.filter(|setting| setting.file != "mode");
    let changed: Vec<_> = changed.map(|setting| setting.to_string()).collect();
    if !changed.is_empty() {
        tell(format_args!(
            "settings that are not the defaults: {}; `rtrace{of} session reset` restores the defaults after the trace",
            changed.join(", ")
        ));
    }
    Ok(())
}

/// The settings of the arguments.
pub fn config(args: &StartArgs) -> Result<Config, clap::Error> {
    let mode = match args.overwrite {
        true => Mode::Overwrite,
        false => Mode::Discard,
    };
    let mut config = settings::config(&args.setup)?;
    config.setup.fill(Some(mode), args.setup.choice.buffer);
    add_state(&mut config.setup)?;
    if let Some(only) = &config.setup.tasks.only_command {
        let what = "`only` needs the COMMAND of `rtrace record`: `rtrace start` runs no command";
        return Err(wrong(only.wrong(what)));
    }
    without_probes(&config.setup.maps)?;
    Ok(config)
}

/// Whether some of the channels do not exist yet. The error is for a channel that would record nothing.
fn makes_channels(session: &Session, channels: &[ChannelSetup]) -> anyhow::Result<bool> {
    let mut makes = false;
    for setup in channels.iter().filter(|channel| !channel.is_first()) {
        let channel = session.channel(&setup.name)?;
        makes |= channel.is_none();
        let enabled = channel.map_or(Ok(Vec::new()), |channel| channel.enabled_events())?;
        if setup.events.is_none() && enabled.is_empty() {
            bail!(setup.without_events());
        }
    }
    Ok(makes)
}

fn say_started(session: &Session) -> anyhow::Result<()> {
    let channels = session.channels()?;
    for channel in &channels {
        let settings = channel.settings()?;
        let what = match channels.len() {
            1 => format!("session `{}`", session.name()),
            _ => format!("session `{}`, channel {},", session.name(), channel.name()),
        };
        tell(format_args!(
            "{what} records {} events, {} mode, {} per CPU",
            channel.enabled_events()?.len(),
            settings.mode.name(),
            settings.size
        ));
    }
    Ok(())
}

/// Ends the trace.
pub fn stop(place: &Place) -> anyhow::Result<()> {
    let session = place.session()?;
    let (name, of) = (session.name(), session_option(session.name()));
    if !session.is_active()? {
        bail!("session `{name}` is not recording: `rtrace{of} start` starts it");
    }
    patience::stop(&session, Patience::of(&session)?.as_ref())?;
    // Before the counters are read: a reader that ends meanwhile has read all packets, so the counters report none
    // unread.
    let read = LiveTrace::open(&session)?.is_being_read()?;
    let stats = session.stats()?;
    for line in advice::on_loss(&session, &stats)? {
        say(line);
    }
    let total = stats.all.total;
    let unread = total.unread();
    if unread > 0 && read {
        say(format_args!(
            "{unread} events are still in the buffers: an open reader is writing them"
        ));
    } else if unread > 0 {
        say(format_args!(
            "{unread} events are still in the buffers: `rtrace{of} snapshot -o DIR` or \
             `rtraced{of} --leftover -o DIR` writes them, `rtrace{of} session free` drops them"
        ));
    }
    conclude(total.lost() == 0, total.totals());
    Ok(())
}

/// Frees the buffers of the stopped trace.
pub fn free(place: &Place) -> anyhow::Result<()> {
    let session = stopped(place)?;
    free_buffers(&session)
}

/// Puts every setting back to its default, and frees the buffers.
pub fn reset(place: &Place) -> anyhow::Result<()> {
    let session = stopped(place)?;
    free_buffers(&session)?;
    session.reset()?;
    tell(format_args!(
        "session `{}` has its default settings",
        session.name()
    ));
    Ok(())
}

/// The session. The error is for a session that is active.
fn stopped(place: &Place) -> anyhow::Result<Session> {
    let session = place.session()?;
    if session.is_active()? {
        let name = session.name();
        let of = session_option(name);
        bail!("session `{name}` is recording (EBUSY): run `rtrace{of} stop` first");
    }
    Ok(session)
}

fn free_buffers(session: &Session) -> anyhow::Result<()> {
    let left = match LiveTrace::open(session) {
        // If a reader has a stream open, this is an error: the reader would lose the packet that it is about to write.
        Ok(trace) => trace.has_packets()?,
        Err(Error::NoTrace { .. }) => return Ok(()),
        Err(e) => return Err(e.into()),
    };
    session.free()?;
    if left {
        say(format_args!(
            "dropped {} unread events",
            session.stats()?.all.total.unread()
        ));
    }
    Ok(())
}
