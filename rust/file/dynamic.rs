// SPDX-License-Identifier: GPL-2.0

//! `dynamic_events`: the events that users have defined; `dynamic_missed`: how often these were not
//! seen.

use super::events::AllEventDirs;
use crate::session::Sessions;
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::debugfs::{Dir, READ, READ_WRITE};
use kernel::prelude::*;
use kernel::sync::Arc;

/// The sessions, and where events have their files.
struct Defined {
    sessions: Arc<Sessions>,
    dirs: Arc<AllEventDirs>,
}

/// Makes both.
pub(super) fn make(dir: &mut Dir, sessions: &Arc<Sessions>, dirs: &Arc<AllEventDirs>) -> Result {
    let data = dir.data(Defined {
        sessions: sessions.clone(),
        dirs: dirs.clone(),
    })?;
    dir.text::<DynamicEvents>("dynamic_events", READ_WRITE, data)?;
    dir.text::<DynamicMissed>("dynamic_missed", READ, data)
}

struct DynamicEvents;

impl TextFile for DynamicEvents {
    type Data = Defined;
    const ENDS_ITEM: Option<fn(u8) -> bool> = Some(|byte| byte == b'\n');

    fn show(defined: &Defined, out: &mut Text) -> Result {
        defined.sessions.write_definitions(out)
    }

    fn store(defined: &Defined, input: &str) -> Result {
        let Defined { sessions, dirs } = defined;
        sessions.define("dynamic_events", input, false, &**dirs)
    }

    fn replace(defined: &Defined, input: &str) -> Result {
        let Defined { sessions, dirs } = defined;
        sessions.define("dynamic_events", input, true, &**dirs)
    }
}

struct DynamicMissed;

impl TextFile for DynamicMissed {
    type Data = Defined;

    fn show(defined: &Defined, out: &mut Text) -> Result {
        defined.sessions.write_missed(out)
    }
}
