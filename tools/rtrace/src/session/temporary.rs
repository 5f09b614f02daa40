// SPDX-License-Identifier: GPL-2.0

//! Sessions that `rtrace record` makes for itself. The name of such a session has the number of its maker, unless the
//! user chose the name.

use crate::session::leftovers;
use crate::session::maker::Maker;
use control::{Session, Tracer};
use std::mem;
use terminal::say;

/// A session of this process. Dropping this destroys the session.
#[derive(Debug)]
pub struct Temporary(Session);

impl Temporary {
    /// Creates a session with the name `name`, or a name made from this process's number. Destroys sessions whose
    /// makers were killed.
    pub fn create(tracer: &Tracer, name: Option<&str>) -> anyhow::Result<Self> {
        let me = Maker::me()?;
        leftovers::remove_sessions(tracer, &me)?;
        let name = name.map_or_else(|| me.session(), str::to_owned);
        Ok(Self(tracer.create_session(&name)?))
    }

    /// Leaves the session to the user.
    pub fn keep(self) {
        mem::forget(self);
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let Self(session) = self;
        let destroyed = session.tracer().destroy_session(session.name());
        // Another process may have destroyed the session.
        if let Err(error) = destroyed.or_else(|e| if session.exists() { Err(e) } else { Ok(()) }) {
            say(format_args!(
                "session `{}` could not be destroyed: {error}",
                session.name()
            ));
        }
    }
}
