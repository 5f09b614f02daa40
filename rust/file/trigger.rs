// SPDX-License-Identifier: GPL-2.0

//! `set_trigger` and `triggered` of a session: what its events bring about, and what they have.

use crate::session::Session;
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::debugfs::{Data, Dir, READ, READ_WRITE};
use crate::sys::wait::WaitQueue;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The files that a session has, and the tracer for the default one.
pub(super) fn make(dir: &mut Dir, session: Data<Arc<Session>>) -> Result {
    dir.text::<SetTrigger>("set_trigger", READ_WRITE, session)?;
    dir.text::<Triggered>("triggered", READ, session)
}

/// The triggers: `PATTERN TRIGGER` sets one, `PATTERN !TRIGGER` takes it away.
struct SetTrigger;

impl TextFile for SetTrigger {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        session.write_triggers(out)
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        let (pattern, trigger) = input
            .trim()
            .split_once(|c: char| c.is_ascii_whitespace())
            .ok_or_else(|| session.refuse(fmt!("set_trigger: 'PATTERN TRIGGER' is expected")))?;
        session.set_trigger("set_trigger", pattern, trigger)
    }

    /// As for `set_filter`, `>` takes nothing away but by the empty text.
    fn replace(session: &Arc<Session>, input: &str) -> Result {
        if input.is_empty() {
            return session.remove_triggers();
        }
        Self::store(session, input)
    }
}

/// What the triggers have done; poll(2) tells of a change.
struct Triggered;

impl TextFile for Triggered {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        session.write_triggered(out)
    }

    fn waiters(session: &Arc<Session>) -> Option<&Arc<WaitQueue>> {
        Some(session.trigger_waiters())
    }

    fn version(session: &Arc<Session>) -> u64 {
        session.triggers_version()
    }
}
