// SPDX-License-Identifier: GPL-2.0

//! Sessions and probe events (`-k`) of an `rtrace record` that was killed by SIGKILL before it told the kernel what to
//! remove, or while another session recorded its events. The next `rtrace record` removes them, if their names name the
//! killed process.

use crate::session::maker::Maker;
use control::{LiveTrace, Tracer};
use system::Error;
use terminal::say;

/// Destroys the sessions whose makers are gone, except sessions that have a reader.
pub fn remove_sessions(tracer: &Tracer, me: &Maker) -> anyhow::Result<()> {
    for name in tracer.sessions()? {
        if Maker::of_session(&name).is_some_and(|maker| maker.is_gone(me)) {
            remove_session(tracer, &name);
        }
    }
    Ok(())
}

/// Deletes the dynamic events whose makers are gone, except events that a session records.
pub fn remove_events(tracer: &Tracer, me: &Maker) -> anyhow::Result<()> {
    for event in tracer.dynamic_events()? {
        let maker = Maker::of_subsystem(&event.subsystem);
        if maker.is_some_and(|maker| maker.is_gone(me)) {
            if let Err(error) = tracer.undefine(&[event.to_string()]) {
                say(format_args!(
                    "cannot remove event {event}, left by a killed rtrace record: {error}"
                ));
            }
        }
    }
    Ok(())
}

fn remove_session(tracer: &Tracer, name: &str) {
    let removed = tracer.session(name).and_then(|session| {
        let is_read = match LiveTrace::open(&session) {
            Ok(trace) => trace.is_being_read()?,
            Err(Error::NoTrace { .. }) => false,
            Err(error) => return Err(error),
        };
        if !is_read {
            tracer.destroy_session(name)?;
            say(format_args!(
                "removed session `{name}`, left by a killed rtrace record"
            ));
        }
        Ok(())
    });
    match removed {
        // Another process has destroyed the session before.
        Err(_) if tracer.session(name).is_err() => {}
        Err(error) => say(format_args!(
            "cannot remove session `{name}`, left by a killed rtrace record: {error}"
        )),
        Ok(()) => {}
    }
}
