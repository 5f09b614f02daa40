// SPDX-License-Identifier: GPL-2.0

//! What is done to a session however a recording ends.

use crate::session::patience::{self, Patience};
use control::Session;
use terminal::say;
use uuid::Uuid;

/// Ends the trace however the recording ends.
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
            // Who destroyed the session has stopped it.
            _ => {}
        }
    }
}

/// Frees the trace's memory however the recording ends: nobody else is to read it.
pub struct FreeOnDrop<'a> {
    /// The session.
    pub session: &'a Session,
    /// The trace.
    pub uuid: Option<Uuid>,
}

impl Drop for FreeOnDrop<'_> {
    fn drop(&mut self) {
        let freed = self.session.uuid().and_then(|uuid| {
            // Somebody else's trace, if it was started again meanwhile.
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
