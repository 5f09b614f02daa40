// SPDX-License-Identifier: GPL-2.0

//! Records the state of the system in a session's trace.

use crate::session::Session;
use crate::source::state::lines::{LineParts, LineRefusal};
use crate::source::state::Dump;
use kernel::prelude::*;

impl Session {
    /// Records the state that these lines describe. If a line is wrong, nothing is recorded. Errors: `EBADF` if
    /// the session is not active or records no event of the state; `EINTR` if the task is killed, and then the
    /// rest is not recorded. May sleep.
    ///
    /// No lock is held during that: after a stop, the remaining lines have no effect.
    pub(crate) fn take_state(&self, lines: &str) -> Result {
        let parts = LineParts::parse(lines).map_err(|refusal| match refusal {
            LineRefusal::Memory => ENOMEM,
            LineRefusal::Wrong { number, shown } => {
                self.refuse(format_args!("statedump: line {number} is wrong\n{shown}"))
            }
        })?;
        let Some((_, recording)) = self.active() else {
            self.refuse(fmt!("statedump: the session is not active"));
            return Err(EBADF);
        };
        let events = self.available();
        let states = events.of().map(|(_, state)| state);
        let dump = Dump::new(states, |probe| recording.has(probe))?;
        if !dump.is_recorded() {
            self.refuse(fmt!(
                "statedump: the session records no event of the state (statedump:*)"
            ));
            return Err(EBADF);
        }
        dump.take(&parts)
    }
}
