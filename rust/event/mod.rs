// SPDX-License-Identifier: GPL-2.0

//! The catalogue of the events that can be recorded.
//!
//! The [`registry`] has the events of all [sources](crate::source). For the rest of the module they look alike.
//! Events of modules appear and disappear together with their modules ([`awaited`]).

pub(crate) mod awaited;
mod format;
mod id;
pub(crate) mod registry;

use crate::abi::schema::Field;
use crate::arch::word::SharedWord;
use crate::filter::compile::FilterNames;
use crate::probe::filter::{names, Filter, Refusal};
use crate::source::{EventSource, FullName};
use crate::sys::privilege::Rights;
pub(crate) use id::Id;
use kernel::prelude::*;
use kernel::sync::Arc;

/// An event that can be recorded.
pub(crate) struct Event {
    id: Arc<Id>,
    source: KBox<dyn EventSource>,
    /// Non-zero while the event can be selected: its source exists, or its module can be loaded.
    known: SharedWord,
}

impl Event {
    /// Creates an event that is known.
    fn new(id: Arc<Id>, source: KBox<dyn EventSource>) -> Self {
        Self {
            id,
            source,
            known: SharedWord::new(1),
        }
    }

    /// The event's id, which is its index among all events. Another event can have the id only when this event
    /// is gone and no [selection](crate::session::Selection) has it. Traces have numbers of their own.
    pub(crate) fn id(&self) -> u32 {
        self.id.number()
    }

    /// A reference to the id, which keeps it in use.
    pub(crate) fn shared_id(&self) -> &Arc<Id> {
        &self.id
    }

    /// The event's source.
    pub(crate) fn source(&self) -> &dyn EventSource {
        &*self.source
    }

    /// The event's source, if its type is `S`.
    pub(crate) fn source_as<S: EventSource>(&self) -> Option<&S> {
        self.source().as_any().downcast_ref()
    }

    /// Whether the event can be selected: it is present, or awaited.
    pub(crate) fn is_known(&self) -> bool {
        self.known.load() != 0
    }

    /// Whether the event can fire now. An event of a module that is not loaded cannot.
    pub(crate) fn is_present(&self) -> bool {
        self.is_known() && self.source.can_fire()
    }

    /// Whether the event is of a module that can be loaded, and is not.
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

    /// Name: the directory below that of the subsystem.
    pub(crate) fn name(&self) -> &str {
        self.full_name().1
    }

    /// Name, as viewers of traces show it.
    pub(crate) fn trace_name(&self) -> &str {
        self.source.trace_name()
    }

    /// Subsystem and name.
    pub(crate) fn full_name(&self) -> FullName<'_> {
        self.source.full_name()
    }

    /// The names that patterns match: its own, and those of ftrace and perf if they differ.
    pub(crate) fn names(&self) -> impl Iterator<Item = FullName<'_>> {
        let aliases = self.source.aliases().into_iter().flatten();
        Iterator::chain([self.full_name()].into_iter(), aliases)
    }

    /// Whether the event has this name.
    fn is_called(&self, name: FullName<'_>) -> bool {
        self.names().any(|known| known == name)
    }

    /// Whether patterns must name its subsystem or its name to select it.
    pub(crate) fn is_explicit(&self) -> bool {
        self.is_awaited() || self.source.is_explicit()
    }

    /// Creates a filter of its records, for a file with these rights. The expression is at position `at` of a line. May
    /// sleep.
    pub(crate) fn filter(
        &self,
        expression: &str,
        at: usize,
        rights: Rights,
    ) -> Result<Arc<Filter>, Refusal> {
        if !self.source.can_be_filtered() {
            return Err(Refusal::TooLong);
        }
        Filter::new(self.value_names(rights), expression, at)
    }

    /// Names of the values in its records, for a file with these rights.
    pub(crate) fn value_names(
        &self,
        rights: Rights,
    ) -> FilterNames<'static, impl Iterator<Item = Field<'_>> + Clone> {
        names(self.fields(), rights)
    }

    /// The event's fields, in the order of the record.
    pub(crate) fn fields(&self) -> impl Iterator<Item = Field<'_>> + Clone {
        (0..).map_while(|place| self.field(place))
    }

    /// The field at this index.
    pub(crate) fn field(&self, place: usize) -> Option<Field<'_>> {
        self.source.field(place)
    }
}
