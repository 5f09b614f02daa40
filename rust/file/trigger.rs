// SPDX-License-Identifier: GPL-2.0

//! `triggered` of a session: the counters of its triggers.

use crate::session::Session;
use crate::sys::debugfs::text::{Text, TextChanges, TextFile};
use crate::sys::debugfs::{Data, Dir, READ};
use kernel::prelude::*;
use kernel::sync::Arc;

/// Creates the file that each session has. The tracer has it, too, for the default session.
pub(super) fn make(dir: &mut Dir, session: Data<Arc<Session>>) -> Result {
    dir.text::<Triggered>("triggered", READ, session)
}

/// The counters of the triggers. poll(2) reports changes.
struct Triggered;

impl TextFile for Triggered {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        session.write_triggered(out)
    }

    fn changes(session: &Arc<Session>) -> Option<&TextChanges> {
        Some(session.trigger_changes())
    }
}
