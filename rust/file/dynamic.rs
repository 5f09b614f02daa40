// SPDX-License-Identifier: GPL-2.0

//! `dynamic_events`: the events that users have defined. `dynamic_missed`: how many times each of them was
//! missed.

use crate::session::Sessions;
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::debugfs::{Dir, READ, READ_WRITE};
use crate::sys::privilege::Rights;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Creates both files.
pub(super) fn make(dir: &mut Dir, sessions: &Arc<Sessions>) -> Result {
    let data = dir.data(sessions.clone())?;
    dir.text::<DynamicEvents>("dynamic_events", READ_WRITE, data)?;
    dir.text::<DynamicMissed>("dynamic_missed", READ, data)
}

struct DynamicEvents;

impl TextFile for DynamicEvents {
    type Data = Arc<Sessions>;

    fn ends_item(_: &Arc<Sessions>) -> Option<fn(u8) -> bool> {
        Some(|byte| byte == b'\n')
    }

    fn drop_item(sessions: &Arc<Sessions>, item: &str) {
        sessions.default().refuse_unfinished("dynamic_events", item);
    }

    fn show(sessions: &Arc<Sessions>, out: &mut Text) -> Result {
        sessions.write_definitions(out)
    }

    fn store(sessions: &Arc<Sessions>, input: &str, rights: Rights) -> Result {
        sessions.define("dynamic_events", input, false, rights)
    }

    fn replace(sessions: &Arc<Sessions>, input: &str, rights: Rights) -> Result {
        sessions.define("dynamic_events", input, true, rights)
    }
}

struct DynamicMissed;

impl TextFile for DynamicMissed {
    type Data = Arc<Sessions>;

    fn show(sessions: &Arc<Sessions>, out: &mut Text) -> Result {
        sessions.write_missed(out)
    }
}
