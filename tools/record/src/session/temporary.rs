// SPDX-License-Identifier: GPL-2.0

//! Sessions that `rtrace record` makes for itself. The name of such a session has the number of its maker, unless the
//! user chose the name.

use crate::session::leftovers;
use crate::session::maker::Maker;
use control::{OnClose, Session, Tracer};
use std::mem;
use terminal::say;

/// A session of this process. Dropping this destroys the session, as does the end of the process.
#[derive(Debug)]
pub struct Temporary {
    session: Session,
    // The kernel destroys the session when this is closed.
    on_close: Option<OnClose>,
}

impl Temporary {
    /// Creates a session with the name `name`, or a name made from this process's number. Destroys sessions whose
    /// makers were killed before the kernel knew of them.
    pub fn create(tracer: &Tracer, name: Option<&str>) -> anyhow::Result<Self> {
        let mut this = Self::create_to_keep(tracer, name)?;
        let on_close = this.on_close.insert(tracer.on_close()?);
        on_close.session(this.session.name())?;
        Ok(this)
    }

    /// Creates a session that outlives the process if that is killed.
    pub fn create_to_keep(tracer: &Tracer, name: Option<&str>) -> anyhow::Result<Self> {
        let me = Maker::me()?;
        leftovers::remove_sessions(tracer, &me)?;
        let name = name.map_or_else(|| me.session(), str::to_owned);
        Ok(Self {
            session: tracer.create_session(&name)?,
            on_close: None,
        })
    }

    /// Leaves the session to the user, if it was created to be kept.
    pub fn keep(self) {
        mem::forget(self);
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.on_close.is_some() {
            return;
        }
        let session = &self.session;
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
