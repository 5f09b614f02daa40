// SPDX-License-Identifier: GPL-2.0

//! Events of tracepoints whose handlers are in another module: rtrace-events makes the handlers from the
//! kernel's own macros (`events/`).
//!
//! The handler computes the size of its record, reserves the space by a call of this module, writes the record, and
//! commits it by a second call.

use super::attached::AttachedProbes;
use super::description::{Description, FullName};
use super::event_source::EventSource;
use super::probe_list::NewProbe;
use crate::abi::schema::Field;
use crate::probe::Probe;
use crate::sys::foreign::ForeignModule;
use crate::sys::tracepoint::{AttachPoint, Handler};
use kernel::error::Result;

/// An event whose handler is in another module.
pub(crate) struct External {
    /// The event's names and fields.
    pub(crate) description: Description,
    /// The tracepoint that fires the event.
    pub(crate) tracepoint: AttachPoint,
    /// The handler.
    pub(crate) handler: Handler<Probe>,
}

impl EventSource for External {
    fn full_name(&self) -> FullName<'_> {
        self.description.full_name()
    }

    fn field(&self, place: usize) -> Option<Field<'_>> {
        self.description.field(place)
    }

    fn attach(&self, new: NewProbe<'_>, to: &mut AttachedProbes) -> Result {
        to.at_tracepoint(self.tracepoint.clone(), self.handler, new)
    }

    fn can_fire(&self) -> bool {
        match &self.tracepoint {
            AttachPoint::Kernel(_) => true,
            AttachPoint::Module(tracepoint) => tracepoint.is_there(),
        }
    }

    fn is_of(&self, owner: ForeignModule) -> bool {
        self.handler.is_of(owner)
    }
}
