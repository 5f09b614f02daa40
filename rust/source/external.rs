// SPDX-License-Identifier: GPL-2.0

//! Events of tracepoints whose handlers are in another module: rtrace-events makes them from the kernel's own macros
//! (`events/`).
//!
//! The handler computes the size of its record, reserves the space by a call of this module, writes the record, and
//! commits it by a second call.

use super::description::Description;
use crate::probe::Probe;
use crate::sys::tracepoint::{AttachPoint, Handler};

/// An event whose handler is in another module.
pub(crate) struct External {
    /// Its names and fields.
    pub(crate) description: Description,
    /// The tracepoint that fires it.
    pub(crate) tracepoint: AttachPoint,
    /// Its handler.
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
