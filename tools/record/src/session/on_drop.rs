// SPDX-License-Identifier: GPL-2.0

//! Actions on a session at the end of a recording, after errors too.

use crate::session::patience::{self, Patience};
use control::Session;
use terminal::say;
use uuid::Uuid;

/// Stops the trace when it is dropped.
pub struct StopOnDrop<'a> {
    /// The session.
    pub session: &'a Session,
    /// Reports a stop that takes long.
    pub patience: Option<Patience>,
}

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        match patience::stop(self.session, self.patience.as_ref()) {
            Err(error) if self.session.exists() => {
                say(format_args!("the trace could not be stopped: {error}"));
            }
            // The session was destroyed, which stops its trace.
            _ => {}
        }
    }
}

/// Frees the trace's memory when it is dropped, because no other process is to read the trace.
pub struct FreeOnDrop<'a> {
    /// The session.
    pub session: &'a Session,
    /// The trace.
    pub uuid: Option<Uuid>,
}

impl Drop for FreeOnDrop<'_> {
    fn drop(&mut self) {
        let freed = self.session.uuid().and_then(|uuid| {
            // A session that was started again has another trace.
            if uuid == self.uuid {
                self.session.free()
            } else {
                Ok(())
            }
        });
        match freed {
            Err(error) if self.session.exists() => {
                say(format_args!("the buffers could not be freed: {error}"));
            }
            _ => {}
        }
    }
}
