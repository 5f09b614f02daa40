// SPDX-License-Identifier: GPL-2.0

//! `rtrace session`.

use crate::args::settings::{maps, without_probes};
use crate::args::SessionCreateArgs;
use crate::schema::Schema;
use control::{LiveTrace, Session};
use record::place::Place;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use system::Error;
use terminal::{print, say, tell, HEADING};

/// Makes a session with maps. If a map is refused, no session is made.
pub fn create(place: &Place, args: &SessionCreateArgs) -> anyhow::Result<()> {
    let maps = maps(&args.maps)?;
    without_probes(&maps)?;
    let tracer = place.tracer()?;
    let session = tracer.create_session(&args.name)?;
    if let Err(error) = maps.apply(&session) {
        tracer.destroy_session(&args.name)?;
        return Err(error);
    }
    tell(format_args!(
        "created session `{}`; record with `rtrace --session {0} start -e PATTERN`",
        session.name()
    ));
    Ok(())
}

/// Stops a session and removes it.
pub fn destroy(place: &Place, name: &str) -> anyhow::Result<()> {
    let tracer = place.tracer()?;
    let dropped = dropped(&tracer.session(name)?)?;
    tracer.destroy_session(name)?;
    tell(format_args!("removed session `{name}`"));
    if dropped > 0 {
        say(format_args!("dropped {dropped} unread events"));
    }
    Ok(())
}

/// Number of unread events that a session drops when it is destroyed. 0 if a reader has the trace open.
fn dropped(session: &Session) -> anyhow::Result<u64> {
    match LiveTrace::open(session) {
        Ok(trace) if trace.is_being_read()? => Ok(0),
        Ok(_) => Ok(session.stats()?.all.total.unread()),
        Err(Error::NoTrace { .. }) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// The sessions, for JSON.
#[derive(JsonSchema, Serialize)]
pub struct Sessions {
    sessions: Vec<Row>,
}

/// A row of the list of sessions.
#[derive(JsonSchema, Serialize)]
struct Row {
    name: String,
    state: State,
    channels: usize,
    events_enabled: usize,
    /// The identity of the current trace, or of the last one.
    trace: Option<String>,
}

/// State of a session.
#[derive(Clone, Copy, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    NotStarted,
    Recording,
    Stopped,
}

impl State {
    fn text(self) -> &'static str {
        match self {
            Self::NotStarted => "not started",
            Self::Recording => "recording",
            Self::Stopped => "stopped",
        }
    }
}

/// Prints the sessions.
pub fn list(place: &Place, json: bool) -> anyhow::Result<()> {
    let tracer = place.tracer()?;
    let mut rows = Vec::new();
    for name in tracer.sessions()? {
        let row = tracer.session(&name).and_then(|session| row(&session));
        match row {
            Ok(row) => rows.push(row),
            // Another process has destroyed the session meanwhile.
            Err(_) if !tracer.sessions()?.contains(&name) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if json {
        return Schema::Sessions.print(&Sessions { sessions: rows }, None);
    }
    Ok(print(&text(&rows)?)?)
}

fn row(session: &Session) -> system::Result<Row> {
    let channels = session.channels()?;
    let mut events_enabled = 0;
    for channel in &channels {
        events_enabled += channel.enabled_events()?.len();
    }
    let trace = session.uuid()?;
    Ok(Row {
        name: session.name().to_owned(),
        state: match trace {
            _ if session.is_active()? => State::Recording,
            Some(_) => State::Stopped,
            None => State::NotStarted,
        },
        channels: channels.len(),
        events_enabled,
        trace: trace.map(|uuid| uuid.to_string()),
    })
}

fn text(rows: &[Row]) -> Result<String, std::fmt::Error> {
    let names = rows.iter().map(|row| row.name.len());
    let width = names.max().unwrap_or(0).max("session".len());
    let mut out = String::new();
    writeln!(
        out,
        "{HEADING}{:width$}  {:11}  {:>8}  {:>6}{HEADING:#}",
        "session", "state", "channels", "events"
    )?;
    for row in rows {
        writeln!(
            out,
            "{:width$}  {:11}  {:>8}  {:>6}",
            row.name,
            row.state.text(),
            row.channels,
            row.events_enabled
        )?;
    }
    Ok(out)
}
