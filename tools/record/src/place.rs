// SPDX-License-Identifier: GPL-2.0

//! Location of the tracer, and the session to work with.

use control::{Session, Tracer, DEFAULT_SESSION};
use std::path::PathBuf;

/// Location of the tracer.
pub struct Place {
    /// Directory that contains the tracer's directory.
    pub debugfs: PathBuf,
    /// The session's name, if one was given.
    pub session: Option<String>,
}

impl Place {
    /// The tracer.
    pub fn tracer(&self) -> system::Result<Tracer> {
        Tracer::find(&self.debugfs)
    }

    /// The session that was given, or `default`, which always exists.
    pub fn session(&self) -> system::Result<Session> {
        let name = self.session.as_deref().unwrap_or(DEFAULT_SESSION);
        self.tracer()?.session(name)
    }
}
