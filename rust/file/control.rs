// SPDX-License-Identifier: GPL-2.0

//! `enable`, `version`, `clock`, `error_log`, `available_events`, `set_event`.

use super::{channel, parse_switch};
use crate::channel::clock::ClockKind;
use crate::session::Session;
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::debugfs::{Data, Dir, Tree, READ, READ_WRITE, WRITE};
use core::fmt::Write;
use kernel::prelude::*;
use kernel::sync::Arc;

pub(super) fn make(tree: &mut Tree, dir: Dir, session: Data<Arc<Session>>) -> Result {
    make_session(tree, dir, session)?;
    tree.text::<Version>(dir, "version", READ, session)?;
    tree.text::<Clock>(dir, "clock", READ_WRITE, session)?;
    tree.text::<ErrorLog>(dir, "error_log", READ, session)?;
    tree.text::<AvailableEvents>(dir, "available_events", READ, session)?;
    tree.text::<SetEvent>(dir, "set_event", READ_WRITE, session)
}

/// The files of a session itself.
pub(super) fn make_session(tree: &mut Tree, dir: Dir, session: Data<Arc<Session>>) -> Result {
    tree.text::<Enable>(dir, "enable", READ_WRITE, session)
}

/// Those that a session's directory has alone.
pub(super) fn make_upkeep(tree: &mut Tree, dir: Dir, session: Data<Arc<Session>>) -> Result {
    tree.text::<FreeBuffer>(dir, "free_buffer", WRITE, session)?;
    tree.text::<Reset>(dir, "reset", READ_WRITE, session)
}

/// Starts and stops the session.
struct Enable;

impl TextFile for Enable {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        out.write_str(if session.is_active() { "1\n" } else { "0\n" })?;
        Ok(())
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        if parse_switch(session, "enable", input)? {
            session.start()
        } else {
            session.stop();
            Ok(())
        }
    }
}

/// Frees the buffers of the last trace.
struct FreeBuffer;

impl TextFile for FreeBuffer {
    type Data = Arc<Session>;

    fn show(_: &Arc<Session>, _: &mut Text) -> Result {
        Err(EPERM)
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        must_be_one(session, "free_buffer", input)?;
        session.free_buffers()
    }
}

/// Which settings are not the default ones; goes back to those.
struct Reset;

impl TextFile for Reset {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        let (now, default) = (session.settings(), session.default_settings());
        if let Some((enabled, usual)) = session.differing_events()? {
            writeln!(out, "set_event {enabled} {usual}")?;
        }
        if now.clock != default.clock {
            writeln!(out, "clock {} {}", now.clock.name(), default.clock.name())?;
        }
        channel::write_differences(&now.config, &default.config, out)?;
        Ok(())
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        must_be_one(session, "reset", input)?;
        session.reset()
    }
}

/// What is written to a file that does one thing.
fn must_be_one(session: &Session, file: &str, input: &str) -> Result {
    let input = input.trim();
    if input == "1" {
        return Ok(());
    }
    Err(session.refuse(fmt!("{file}: '{input}' is not 1")))
}

struct Version;

impl TextFile for Version {
    type Data = Arc<Session>;

    fn show(_: &Arc<Session>, out: &mut Text) -> Result {
        writeln!(out, "{}", crate::abi::VERSION)?;
        Ok(())
    }
}

/// The clock of the trace, in brackets among all there are, as `trace_clock` of ftrace.
struct Clock;

impl TextFile for Clock {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        let chosen = session.settings().clock.name();
        for (i, name) in ClockKind::NAMES.iter().enumerate() {
            let space = if i == 0 { "" } else { " " };
            if *name == chosen {
                write!(out, "{space}[{name}]")?;
            } else {
                write!(out, "{space}{name}")?;
            }
        }
        out.write_str("\n")?;
        Ok(())
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        session.set_clock(input.trim())
    }
}

/// Why the last refused write was refused.
struct ErrorLog;

impl TextFile for ErrorLog {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        session.write_error(out)?;
        Ok(())
    }
}

struct AvailableEvents;

impl TextFile for AvailableEvents {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        for event in session.available() {
            writeln!(out, "{}:{}", event.subsystem(), event.name())?;
        }
        Ok(())
    }
}

/// The enabled events; patterns written to it enable and disable.
struct SetEvent;

impl TextFile for SetEvent {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        for event in session.enabled_events()? {
            writeln!(out, "{}:{}", event.subsystem(), event.name())?;
        }
        Ok(())
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        session.set_by_patterns(input, false)
    }

    fn replace(session: &Arc<Session>, input: &str) -> Result {
        session.set_by_patterns(input, true)
    }
}
