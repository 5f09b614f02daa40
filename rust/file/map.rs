// SPDX-License-Identifier: GPL-2.0

//! `maps` of a session: the entries of its maps. A write of a map's name removes the map's entries; `>` with nothing
//! removes those of all maps.

use crate::session::Session;
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::debugfs::{Data, Dir, READ_WRITE};
use crate::sys::privilege::Rights;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Creates the file that each session has. The tracer has it, too, for the default session.
pub(super) fn make(dir: &mut Dir, session: Data<Arc<Session>>) -> Result {
    dir.text::<Maps>("maps", READ_WRITE, session)
}

struct Maps;

impl TextFile for Maps {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        session.write_maps(out)
    }

    fn store(session: &Arc<Session>, input: &str, _: Rights) -> Result {
        session.empty_maps(input.trim())
    }

    fn replace(session: &Arc<Session>, input: &str, _: Rights) -> Result {
        session.empty_maps(input.trim())
    }
}
