// SPDX-License-Identifier: GPL-2.0

//! `metadata`: what makes the streams readable (CTF 1.8, TSDL).

use crate::session::Session;
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::debugfs::{Data, Dir, Tree, READ};
use crate::sys::wait::WaitQueue;
use kernel::prelude::*;
use kernel::sync::Arc;

pub(super) fn make(tree: &mut Tree, dir: Dir, session: Data<Arc<Session>>) -> Result {
    tree.text::<Metadata>(dir, "metadata", READ, session)
}

/// The text of the current trace, or of the last one. It grows when an event is enabled that
/// was not before; poll(2) tells.
struct Metadata;

impl TextFile for Metadata {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        session.write_metadata(out)
    }

    fn changes(session: &Arc<Session>) -> Option<(u64, &WaitQueue)> {
        Some(session.metadata_changes())
    }
}
