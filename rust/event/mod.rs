// SPDX-License-Identifier: GPL-2.0

//! The catalogue: which events can be recorded.
//!
//! The [`registry`] has the events of all [sources](crate::source); to the rest of the module they look alike.
//! Events of modules come and go with these ([`awaited`]).

pub(crate) mod awaited;
mod format;
mod id;
pub(crate) mod registry;

use crate::abi::schema::Field;
use crate::arch::word::SharedWord;
use crate::probe::filter::{Filter, Refusal};
use crate::source::{EventSource, FullName};
pub(crate) use id::Id;
use kernel::prelude::*;
use kernel::sync::Arc;

/// An event that can be recorded.
pub(crate) struct Event {
    id: Arc<Id>,
    source: KBox<dyn EventSource>,
    /// Not 0 while there is what fires it, or that can come.
    known: SharedWord,
}

impl Event {
    /// An event that is known.
    fn new(id: Arc<Id>, source: KBox<dyn EventSource>) -> Self {
        Self {
            id,
            source,
            known: SharedWord::new(1),
        }
    }

    /// Its id: its place among all events. Another event can have it only when this event is gone and no
    /// [selection](crate::session::Selection) has it; traces have numbers of their own.
    pub(crate) fn id(&self) -> u32 {
        self.id.number()
    }

    /// The id, to keep it in use.
    pub(crate) fn shared_id(&self) -> &Arc<Id> {
        &self.id
    }

    /// How it comes about.
    pub(crate) fn source(&self) -> &dyn EventSource {
        &*self.source
    }

    /// Its source, if that is an `S`.
    pub(crate) fn source_as<S: EventSource>(&self) -> Option<&S> {
        self.source().as_any().downcast_ref()
    }

    /// Whether it can be chosen: it is present, or awaited.
    pub(crate) fn is_known(&self) -> bool {
        self.known.load() != 0
    }

    /// Whether it can fire now; that of a module that is gone cannot.
    fn is_present(&self) -> bool {
        self.is_known() && self.source.can_fire()
    }

    /// Whether it is of a module that can be loaded, and is not.
    pub(crate) fn is_awaited(&self) -> bool {
        self.is_known() && !self.is_present()
    }

    fn set_known(&self, known: bool) {
        self.known.store(known.into());
    }

    /// Subsystem: the directory below `events/`.
    pub(crate) fn subsystem(&self) -> &str {
        self.full_name().0
    }

    /// Name, as viewers of traces know it.
    pub(crate) fn name(&self) -> &str {
        self.full_name().1
    }

    /// Both.
    pub(crate) fn full_name(&self) -> FullName<'_> {
        self.source.full_name()
    }

    /// The names by which patterns pick it: its own, and then those that ftrace and perf have for
    /// it, where they are others.
    pub(crate) fn names(&self) -> impl Iterator<Item = FullName<'_>> {
        let aliases = self.source.aliases().into_iter().flatten();
        Iterator::chain([self.full_name()].into_iter(), aliases)
    }

    /// Whether this is one of its names.
    fn is_called(&self, name: FullName<'_>) -> bool {
        self.names().any(|known| known == name)
    }

    /// Whether it is chosen only where its subsystem or its name was asked for.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.is_awaited() || self.source.is_asked_for()
    }

    /// Makes a filter of its records for the current task. May sleep.
    pub(crate) fn filter(&self, expression: &str) -> Result<Arc<Filter>, Refusal> {
        if !self.source.can_be_filtered() {
            return Err(Refusal::TooLong);
        }
        Filter::new(self.fields(), expression)
    }

    /// Its fields, in the order of the record.
    pub(crate) fn fields(&self) -> impl Iterator<Item = Field<'_>> + Clone {
        (0..).map_while(|place| self.field(place))
    }

    /// The one at this place.
    pub(crate) fn field(&self, place: usize) -> Option<Field<'_>> {
        self.source.field(place)
    }
}
