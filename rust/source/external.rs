// SPDX-License-Identifier: GPL-2.0

//! Events that tracepoints fire whose probes are in other modules: those that are made from the
//! kernel's own macros (`events/`).
//!
//! Such a probe finds out how large its record is, gets the space from here, lays the record down
//! itself, and says that it is complete.

use super::description::Description;
use crate::probe::Probe;
use crate::sys::tracepoint::{AttachPoint, Handler};

/// An event, and what attaches it.
pub(crate) struct External {
    /// Its names and fields.
    pub(crate) description: Description,
    /// Where it fires.
    pub(crate) tracepoint: AttachPoint,
    /// Its probe, for records that are captured and others.
    pub(crate) handler: Handler<Probe>,
}

impl External {
    /// Whether it can fire now: that of a module can while that is loaded.
    pub(crate) fn is_there(&self) -> bool {
        match &self.tracepoint {
            AttachPoint::Kernel(_) => true,
            AttachPoint::Module(tracepoint) => tracepoint.is_there(),
        }
    }
}
