// SPDX-License-Identifier: GPL-2.0

//! The events of functions as sources: each session has lists of its own.

use super::kind::FunctionKind;
use crate::abi::schema::Field;
use crate::source::attached::AttachedProbes;
use crate::source::description::FullName;
use crate::source::event_source::{EventSource, FoundSources};
use crate::source::probe_list::NewProbe;
use kernel::prelude::*;

/// Finds the events of functions.
pub(in crate::source) fn find(sources: &mut FoundSources) -> Result {
    let mut all = FunctionKind::ALL.into_iter();
    all.try_for_each(|kind| sources.add(kind))
}

impl EventSource for FunctionKind {
    fn full_name(&self) -> FullName<'_> {
        (Self::SUBSYSTEM, self.name())
    }

    fn field(&self, place: usize) -> Option<Field<'_>> {
        self.fields().get(place).copied()
    }

    fn attach(&self, new: NewProbe<'_>, to: &mut AttachedProbes) -> Result {
        let mut events = to.sources.functions.events.iter();
        let event = events.find(|event| event.kind == *self).ok_or(ENOENT)?;
        to.in_list(event.clone(), new)
    }
}
