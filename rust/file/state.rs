// SPDX-License-Identifier: GPL-2.0

//! `statedump` of a session: records the state of the system.

use crate::session::Session;
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::debugfs::{Data, Dir, WRITE};
use crate::sys::privilege::Rights;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Creates the file of a session's directory.
pub(super) fn make(dir: &mut Dir, session: Data<Arc<Session>>) -> Result {
    dir.text::<StateDump>("statedump", WRITE, session)
}

/// Records the state: all of it for `1`, or the state that lines describe.
struct StateDump;

impl TextFile for StateDump {
    type Data = Arc<Session>;

    fn ends_item(_: &Arc<Session>) -> Option<fn(u8) -> bool> {
        Some(|byte| byte == b'\n')
    }

    fn show(_: &Arc<Session>, _: &mut Text) -> Result {
        Err(EPERM)
    }

    fn store(session: &Arc<Session>, input: &str, _: Rights) -> Result {
        session.take_state(input)
    }
}
