// SPDX-License-Identifier: GPL-2.0

//! `metadata`: the description of the streams (CTF 1.8, TSDL). `uuid`: the identity of their trace.

use crate::abi::uuid;
use crate::session::Session;
use crate::sys::debugfs::text::{Text, TextChanges, TextFile};
use crate::sys::debugfs::{Data, Dir, READ};
use core::fmt::Write;
use kernel::prelude::*;
use kernel::sync::Arc;

pub(super) fn make(dir: &mut Dir, session: Data<Arc<Session>>) -> Result {
    dir.text::<Metadata>("metadata", READ, session)?;
    dir.text::<Uuid>("uuid", READ, session)
}

/// Identity of the trace that the metadata describes.
struct Uuid;

impl TextFile for Uuid {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        let uuid = uuid::UuidText::new(&session.trace()?.uuid());
        writeln!(out, "{}", uuid.as_str())?;
        Ok(())
    }
}

/// The metadata of the current trace, or of the last one. It grows when an event is enabled for the first time;
/// poll(2) reports that.
struct Metadata;

impl TextFile for Metadata {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        session.trace()?.write_metadata(out)
    }

    fn changes(session: &Arc<Session>) -> Option<&TextChanges> {
        Some(session.metadata_changes())
    }
}
