// SPDX-License-Identifier: GPL-2.0

//! `statedump` of a session: has the state recorded.

use crate::session::Session;
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::debugfs::{Data, Dir, WRITE};
use kernel::prelude::*;
use kernel::sync::Arc;

/// The file that a session's directory has.
pub(super) fn make(dir: &mut Dir, session: Data<Arc<Session>>) -> Result {
    dir.text::<StateDump>("statedump", WRITE, session)
}

/// What there is at the moment: `1`, or lines.
struct StateDump;

impl TextFile for StateDump {
    type Data = Arc<Session>;

    fn ends_item(_: &Arc<Session>) -> Option<fn(u8) -> bool> {
        Some(|byte| byte == b'\n')
    }

    fn show(_: &Arc<Session>, _: &mut Text) -> Result {
        Err(EPERM)
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        session.take_state(input)
    }
}
