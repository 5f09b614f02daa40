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
use crate::source::external::External;
use crate::source::listed::ListedSource;
use crate::source::{EventSource, FullName};
use crate::sys::foreign::ForeignModule;
pub(crate) use id::Id;
use kernel::error::Result;
use kernel::sync::Arc;

/// An event that can be recorded.
pub(crate) struct Event {
    id: Arc<Id>,
    source: EventSource,
    /// Not 0 while there is what fires it, or that can come.
    known: SharedWord,
}

impl Event {
    /// An event that is known.
    fn new(id: Arc<Id>, source: EventSource) -> Self {
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
    pub(crate) fn source(&self) -> &EventSource {
        &self.source
    }

    /// Its source, if that keeps a list of probes.
    pub(crate) fn listed(&self) -> Option<&ListedSource> {
        match &self.source {
            EventSource::Listed(listed) => Some(listed),
            _ => None,
        }
    }

    /// Its source, if its handler is in another module.
    fn external(&self) -> Option<&External> {
        match &self.source {
            EventSource::External(external) => Some(external),
            _ => None,
        }
    }

    /// Whether it can be chosen: it is present, or awaited.
    fn is_known(&self) -> bool {
        self.known.load() != 0
    }

    /// Whether it can fire now; that of a module that is gone cannot.
    fn is_present(&self) -> bool {
        self.is_known() && self.external().is_none_or(External::is_there)
    }

    /// Whether it is of a module that can be loaded, and is not.
    pub(crate) fn is_awaited(&self) -> bool {
        self.is_known() && !self.is_present()
    }

    /// Whether one that has a probe can take its place: it is handed over by perf, not recorded now, and a
    /// filter that was made for it fits the other one's records. Any context.
    fn gives_way_to(&self, external: &External) -> bool {
        match &self.source {
            EventSource::Listed(ListedSource::Perf(perf)) => {
                !perf.is_recorded() && perf.description().has_fields_of(&external.description)
            }
            _ => false,
        }
    }

    /// Whether what fires it is still there, where nobody says that it goes. `ENOMEM`: that is not known.
    /// May sleep.
    pub(crate) fn is_there(&self) -> Result<bool> {
        match &self.source {
            EventSource::Listed(ListedSource::Perf(perf)) => perf.is_there(),
            _ => Ok(true),
        }
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
        self.source.names()
    }

    /// Whether its probe is in this module.
    pub(crate) fn is_of(&self, owner: ForeignModule) -> bool {
        self.external()
            .is_some_and(|external| external.handler.is_of(owner))
    }

    /// Whether this is one of its names.
    fn is_called(&self, name: FullName<'_>) -> bool {
        self.names().any(|known| known == name)
    }

    /// Whether it is chosen only where its subsystem or its name was asked for.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.is_awaited() || self.listed().is_some_and(ListedSource::is_asked_for)
    }

    /// Whether it is recorded when nothing else was asked for.
    pub(crate) fn is_default(&self) -> bool {
        self.source.is_default()
    }

    /// Makes a filter of its records for the current task. May sleep.
    pub(crate) fn filter(&self, expression: &str) -> Result<Arc<Filter>, Refusal> {
        if !self.source.can_be_captured() {
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
