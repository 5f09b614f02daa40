// SPDX-License-Identifier: GPL-2.0

//! The registry: the list of all events.
//!
//! Each source adds its events. When the source of an event disappears, the event is absent, until the source
//! appears again. The id of a deleted event is free when neither a session nor a trace has it.
//!
//! The lock is taken during the loading of modules ([`awaited`](super::awaited)). Only the lock of the ids
//! nests within it.

use super::id::{Id, Ids};
use super::Event;
use crate::source::external::External;
use crate::source::{self, EventSource, FullName};
use crate::sys::hotplug::Hotplug;
use crate::sys::perf::Arrivals;
use crate::sys::sort::sort_by;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// The events that can be recorded.
#[pin_data]
pub(crate) struct Registry {
    ids: Arc<Ids>,
    /// Replaced, never changed: readers have the list of one moment.
    #[pin]
    events: Mutex<Arc<Events>>,
}

/// Events by id, including those that are absent now.
pub(crate) struct Events(KVVec<Option<Arc<Event>>>);

impl Events {
    /// The events that are present, in the order of their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Event>> {
        self.0.iter().flatten().filter(|event| event.is_present())
    }

    /// The events that can be selected, in the order of their ids. This includes events of modules that are not loaded.
    pub(crate) fn known(&self) -> impl Iterator<Item = &Arc<Event>> {
        self.0.iter().flatten().filter(|event| event.is_known())
    }

    /// Whether the list has the event, known or not.
    fn has(&self, event: &Event) -> bool {
        let at_its_place = self.0.get(event.id() as usize).and_then(Option::as_ref);
        at_its_place.is_some_and(|known| core::ptr::eq(&**known, event))
    }

    /// The events whose source has the type `S`, known or not, in the order of their ids.
    pub(crate) fn of<S: EventSource>(&self) -> impl Iterator<Item = (&Arc<Event>, &S)> {
        let events = self.0.iter().flatten();
        events.filter_map(|event| Some((event, event.source_as()?)))
    }

    /// A copy without the event with id `old`.
    fn without(&self, old: Option<u32>) -> Result<Self> {
        let mut events = KVVec::with_capacity(self.0.len() + 1, GFP_KERNEL)?;
        for known in &self.0 {
            let kept = known.as_ref().filter(|event| Some(event.id()) != old);
            events.push(kept.cloned(), GFP_KERNEL)?;
        }
        Ok(Self(events))
    }

    /// Adds an event. It replaces the event with the same id.
    fn put(&mut self, event: Arc<Event>) -> Result {
        let place = event.id() as usize;
        while self.0.len() <= place {
            self.0.push(None, GFP_KERNEL)?;
        }
        if let Some(known) = self.0.get_mut(place) {
            *known = Some(event);
        }
        Ok(())
    }
}

impl Registry {
    /// Creates the registry with the events of this kernel; `hotplug` notifies samplers of CPUs. May sleep.
    pub(crate) fn new(hotplug: &Arc<Hotplug<Arrivals>>) -> Result<Arc<Self>> {
        let ids = Ids::new()?;
        let mut events = Events(KVVec::new());
        for source in source::find(hotplug)? {
            let event = Event::new(Id::take(&ids)?, source);
            events.put(Arc::new(event, GFP_KERNEL)?)?;
        }
        let events = Arc::new(events, GFP_KERNEL)?;
        Arc::pin_init(
            pin_init!(Self { ids, events <- new_mutex!(events) }),
            GFP_KERNEL,
        )
    }

    /// The current events.
    pub(crate) fn events(&self) -> Arc<Events> {
        self.events.lock().clone()
    }

    /// Adds the event of a source. If the source [is](EventSource::is_again) that of an absent event of the
    /// same name, that event is present again. `EEXIST`: the name is in use. May sleep.
    pub(crate) fn add<S: EventSource>(&self, source: S) -> Result<Arc<Event>> {
        let event = Event::new(Id::take(&self.ids)?, KBox::new(source, GFP_KERNEL)?);
        let mut events = self.events.lock();
        let name = event.full_name();
        // Events of one source may have an alias in common.
        let is_namesake = |known: &&Arc<Event>| match known.source_as::<S>() {
            Some(known) => known.full_name() == name,
            None => known.is_called(name),
        };
        if events.iter().any(|known| is_namesake(&known)) {
            return Err(EEXIST);
        }
        // An event that is awaited stays awaited beside the new one.
        let mut absent = events.0.iter().flatten().filter(|event| !event.is_known());
        let old = absent.find(is_namesake).cloned();
        let is_again = |old: &Event| match (event.source_as::<S>(), old.source_as()) {
            (Some(new), Some(old)) => new.is_again(old),
            _ => false,
        };
        let old_id = match old {
            Some(old) if is_again(&old) => {
                old.set_known(true);
                return Ok(old);
            }
            // An event with other fields is a different event.
            old => old.map(|old| old.id()),
        };
        let event = Arc::new(event, GFP_KERNEL)?;
        let mut with = events.without(old_id)?;
        with.put(event.clone())?;
        let before = core::mem::replace(&mut *events, Arc::new(with, GFP_KERNEL)?);
        drop(events);
        // Dropped without the lock, because an event may have a probe.
        drop(before);
        Ok(event)
    }

    /// Adds events whose probes are in another module, except those with a name that is known. An event that is
    /// recorded through perf gives way, and the new event gets its id, if it is not recorded now and has the
    /// same fields. Returns each event that was added. May sleep.
    pub(crate) fn add_external(
        &self,
        externals: KVVec<External>,
    ) -> Result<KVVec<Option<Arc<Event>>>> {
        let mut events = self.events.lock();
        let names = Names::new(&events)?;
        let mut all = events.without(None)?;
        let mut added = KVVec::with_capacity(externals.len(), GFP_KERNEL)?;
        for external in externals {
            let name = external.description.full_name();
            let called = names.like(name).filter_map(|id| {
                let event = events.0.get(id as usize)?.as_ref()?;
                event.is_called(name).then_some(event)
            });
            let gives_way =
                |known: &&Arc<Event>| known.source().gives_way_to(&external.description);
            let is_taken = called
                .clone()
                .any(|known| known.is_known() && !gives_way(&known));
            if is_taken {
                added.push(None, GFP_KERNEL)?;
                continue;
            }
            let given = called.clone().find(gives_way);
            let id = match given {
                Some(known) => known.shared_id().clone(),
                None => Id::take(&self.ids)?,
            };
            // The module was loaded before, at another address.
            for old in called {
                if let Some(place) = all.0.get_mut(old.id() as usize) {
                    *place = None;
                }
            }
            let source = KBox::new(external, GFP_KERNEL)?;
            let event = Arc::new(Event::new(id, source), GFP_KERNEL)?;
            all.put(event.clone())?;
            added.push(Some(event), GFP_KERNEL)?;
        }
        let before = core::mem::replace(&mut *events, Arc::new(all, GFP_KERNEL)?);
        drop(events);
        drop(before);
        Ok(added)
    }

    /// Removes a withdrawn event for good. May sleep.
    pub(crate) fn forget(&self, event: &Event) -> Result {
        let mut events = self.events.lock();
        if events.has(event) {
            let kept = events.without(Some(event.id()))?;
            let before = core::mem::replace(&mut *events, Arc::new(kept, GFP_KERNEL)?);
            drop(events);
            drop(before);
        }
        Ok(())
    }

    /// Makes a withdrawn event known again. Returns whether that was possible: another event may have taken its
    /// name. May sleep.
    pub(crate) fn restore(&self, event: &Event) -> bool {
        let events = self.events.lock();
        let is_kept = events.has(event);
        if is_kept {
            event.set_known(true);
        }
        is_kept
    }

    /// Withdraws an event that cannot fire any more: its module is unloaded, or a user removes it. May sleep.
    pub(crate) fn withdraw(&self, event: &Event) {
        let _events = self.events.lock();
        event.set_known(false);
    }
}

/// Events by their names: a hash of each, and the event's id.
struct Names(KVVec<(u32, u32)>);

impl Names {
    /// The names of all events, known or not.
    fn new(events: &Events) -> Result<Self> {
        let mut names = KVVec::with_capacity(events.0.len(), GFP_KERNEL)?;
        for event in events.0.iter().flatten() {
            for name in event.names() {
                names.push((Self::hash(name), event.id()), GFP_KERNEL)?;
            }
        }
        sort_by(&mut names, Ord::cmp);
        Ok(Self(names))
    }

    /// The ids of the events with this name, and perhaps of others.
    fn like(&self, name: FullName<'_>) -> impl Iterator<Item = u32> + Clone + '_ {
        let hash = Self::hash(name);
        let begin = self.0.partition_point(|&(known, _)| known < hash);
        let rest = self.0.iter().skip(begin);
        rest.take_while(move |&&(known, _)| known == hash)
            .map(|&(_, id)| id)
    }

    fn hash((subsystem, name): FullName<'_>) -> u32 {
        let bytes = Iterator::chain(subsystem.bytes(), name.bytes());
        bytes.fold(0, |hash: u32, byte| {
            hash.wrapping_mul(31).wrapping_add(byte.into())
        })
    }
}
