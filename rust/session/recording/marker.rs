// SPDX-License-Identifier: GPL-2.0

//! Markers in the traces of sessions, and the selection of the channel that gets them.

use super::trace::{Recording, Trace};
use crate::input::marker::{self, MarkerRefusal};
use crate::probe::builtin::Builtin;
use crate::session::{ChannelId, Session, Sessions};
use kernel::prelude::*;

impl Sessions {
    /// Records a text in each active session. Errors: `EBADF` if no session is active, `E2BIG` if the text is
    /// too long, `EINVAL` if it contains a NUL. May sleep.
    pub(crate) fn mark(&self, text: &str) -> Result {
        let default = self.default();
        default.check_marker(text)?;
        let mut taken = false;
        self.for_each(|session| taken |= session.take_marker(text));
        if !taken {
            default.refuse(fmt!("marker: no session records markers at the moment"));
            return Err(EBADF);
        }
        Ok(())
    }
}

impl Session {
    /// Records a text. Errors: `EBADF` if the session is not active or has no channel for markers, `E2BIG` if
    /// the text is too long, `EINVAL` if it contains a NUL. May sleep.
    pub(crate) fn mark(&self, text: &str) -> Result {
        self.check_marker(text)?;
        if !self.take_marker(text) {
            self.refuse(fmt!("marker: the session records no markers at the moment"));
            return Err(EBADF);
        }
        Ok(())
    }

    fn check_marker(&self, text: &str) -> Result {
        marker::check(text).map_err(|refusal| {
            let refused = self.refuse(format_args!("marker: {refusal}"));
            match refusal {
                MarkerRefusal::TooLong(_) => E2BIG,
                MarkerRefusal::Nul => refused,
            }
        })
    }

    /// Records a text. Returns whether the session records markers.
    pub(in crate::session) fn take_marker(&self, text: &str) -> bool {
        let Some((trace, recording)) = self.active() else {
            return false;
        };
        self.begin_builtin(Builtin::Marker, &trace, &recording);
        recording.mark(text.as_bytes())
    }

    /// Records a built-in event from now on, if the trace has a channel for it. May sleep.
    pub(in crate::session) fn begin_builtin(
        &self,
        builtin: Builtin,
        trace: &Trace,
        recording: &Recording,
    ) {
        // The event is described before it is recorded.
        if !recording.records(builtin)
            && trace.describe_builtin(builtin)
            && trace.save_metadata().is_ok()
        {
            self.metadata_changes.announce();
            recording.begin_builtin(builtin);
        }
    }

    /// The channel that gets markers, if there is one.
    pub(crate) fn marker_channel(&self) -> Option<ChannelId> {
        self.state.lock().settings.marker_channel
    }

    /// Selects the channel for markers by its name, or no channel (`none`), for the next trace. `control` is
    /// held.
    pub(in crate::session) fn set_marker_channel(&self, name: &str) -> Result {
        let mut state = self.state.lock();
        let named = state.settings.channel_called(name);
        match (named, name) {
            (Some(channel), _) => state.settings.marker_channel = Some(channel),
            (None, "none") => state.settings.marker_channel = None,
            (None, _) => {
                return Err(state.refuse(fmt!("marker_channel: there is no channel '{name}'")))
            }
        }
        Ok(())
    }
}
