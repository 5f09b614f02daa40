// SPDX-License-Identifier: GPL-2.0

//! The registry: which events there are, now.
//!
//! A source puts its events in. When what fires one goes, the event is absent, until it comes
//! again. The id of an event that was deleted is free when neither a session nor a trace has it.
//!
//! The lock is taken where modules come ([`awaited`](super::awaited)): only that of the ids is within it.

use super::id::{Id, Ids};
use super::Event;
use crate::source::aux::AuxSource;
use crate::source::description::Description;
use crate::source::dynamic::Dynamic;
use crate::source::external::External;
use crate::source::function::FunctionKind;
use crate::source::listed::ListedSource;
use crate::source::perf::Perf;
use crate::source::provided::Provided;
use crate::source::sampled::{Pace, Sampled};
use crate::source::state::StateEvent;
use crate::source::syscall::{self, Direction};
use crate::source::{typed, EventSource, FullName};
use crate::sys::hotplug::Hotplug;
use crate::sys::perf::Arrivals;
use crate::sys::threads;
use crate::sys::tracepoint::{Tracepoint, Tracepoints};
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// The events that can be recorded.
#[pin_data]
pub(crate) struct Registry {
    ids: Arc<Ids>,
    /// Replaced, never changed: who looks has the list as it was at one moment.
    #[pin]
    events: Mutex<Arc<Events>>,
}

/// Events by id, also such as are absent now.
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

    /// Whether the event is one of these, known or not.
    fn has(&self, event: &Event) -> bool {
        let at_its_place = self.0.get(event.id() as usize).and_then(Option::as_ref);
        at_its_place.is_some_and(|known| core::ptr::eq(&**known, event))
    }

    /// The events that are recorded through perf, and whether each is known, in the order of their ids.
    pub(crate) fn of_perf(&self) -> impl Iterator<Item = (&Arc<Event>, &Perf, bool)> {
        self.0
            .iter()
            .flatten()
            .filter_map(|event| match event.source() {
                EventSource::Listed(ListedSource::Perf(perf)) => {
                    Some((event, &**perf, event.is_known()))
                }
                _ => None,
            })
    }

    /// The same without the event with id `old`.
    fn without(&self, old: Option<u32>) -> Result<Self> {
        let mut events = KVVec::with_capacity(self.0.len() + 1, GFP_KERNEL)?;
        for known in &self.0 {
            let kept = known.as_ref().filter(|event| Some(event.id()) != old);
            events.push(kept.cloned(), GFP_KERNEL)?;
        }
        Ok(Self(events))
    }

    /// Adds an event; it takes the place of the one with its id.
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
    /// With the events of this kernel: declared ones, system calls, functions, latencies, those of the state,
    /// and samples, which `hotplug` tells of CPUs. A tracepoint that is missing is said once; its events are not
    /// there. May sleep.
    pub(crate) fn new(hotplug: &Arc<Hotplug<Arrivals>>) -> Result<Arc<Self>> {
        let tracepoints = Tracepoints::new()?;
        let find = |name| find(&tracepoints, name);
        let ids = Ids::new()?;
        let mut events = Events(KVVec::new());
        let mut add = |source| -> Result {
            let event = Event::new(Id::take(&ids)?, source);
            events.put(Arc::new(event, GFP_KERNEL)?)
        };
        for &declaration in typed::DECLARED {
            if let Some(tracepoint) = find(declaration.tracepoint) {
                add(EventSource::Typed {
                    declaration,
                    tracepoint,
                })?;
            }
        }
        for direction in Direction::ALL {
            let Some(tracepoint) = find(direction.tracepoint()) else {
                continue;
            };
            for call in syscall::calls() {
                add(EventSource::Syscall {
                    call,
                    direction,
                    tracepoint,
                })?;
            }
        }
        for kind in FunctionKind::ALL {
            add(EventSource::Listed(ListedSource::Function(kind)))?;
        }
        add(EventSource::Listed(ListedSource::WakeupLatency))?;
        add(EventSource::Listed(ListedSource::PreemptLatency))?;
        add(EventSource::Listed(ListedSource::TimerLatency))?;
        threads::init();
        for state in StateEvent::all() {
            add(EventSource::Listed(ListedSource::State(state?)))?;
        }
        for pace in Pace::available() {
            add(EventSource::Listed(ListedSource::Sampled(Sampled::new(
                pace,
                hotplug.clone(),
            )?)))?;
        }
        let events = Arc::new(events, GFP_KERNEL)?;
        Arc::pin_init(
            pin_init!(Self { ids, events <- new_mutex!(events) }),
            GFP_KERNEL,
        )
    }

    /// The events that there are now.
    pub(crate) fn events(&self) -> Arc<Events> {
        self.events.lock().clone()
    }

    /// Adds an event that another module provides. If it was here before, by this name and with
    /// these fields, it is the same event again. `EEXIST`: there is one of that name. May sleep.
    pub(crate) fn provide(&self, description: Description) -> Result<Arc<Event>> {
        let provided = Provided::new(description)?;
        let new = provided.clone();
        self.add(
            EventSource::Listed(ListedSource::Provided(provided)),
            |old| match old {
                EventSource::Listed(ListedSource::Provided(old)) => {
                    old.is_described_by(new.description())
                }
                _ => false,
            },
        )
    }

    /// The same with an AUX source.
    pub(crate) fn add_aux(&self, source: Arc<AuxSource>) -> Result<Arc<Event>> {
        self.add(EventSource::Listed(ListedSource::Aux(source)), |old| {
            matches!(old, EventSource::Listed(ListedSource::Aux(_)))
        })
    }

    /// The same with one that perf hands over.
    pub(crate) fn add_perf(&self, perf: Arc<Perf>) -> Result<Arc<Event>> {
        let new = perf.clone();
        self.add(
            EventSource::Listed(ListedSource::Perf(perf)),
            |old| match old {
                EventSource::Listed(ListedSource::Perf(old)) => old.is_same(&new),
                _ => false,
            },
        )
    }

    /// Adds an event that a user has defined. `EEXIST`: there is one of that name. May sleep.
    pub(crate) fn define(&self, dynamic: Arc<Dynamic>) -> Result<Arc<Event>> {
        self.add(EventSource::Listed(ListedSource::Dynamic(dynamic)), |_| {
            false
        })
    }

    /// Adds an event, unless it `is_again` what was here before by its name: then that is here again.
    fn add(
        &self,
        source: EventSource,
        is_again: impl Fn(&EventSource) -> bool,
    ) -> Result<Arc<Event>> {
        let event = Event::new(Id::take(&self.ids)?, source);
        let mut events = self.events.lock();
        let name = (event.subsystem(), event.name());
        if events.iter().any(|known| known.is_called(name)) {
            return Err(EEXIST);
        }
        // One that is awaited stays so beside it.
        let mut absent = events.0.iter().flatten().filter(|event| !event.is_known());
        let old = absent.find(|known| known.is_called(name)).cloned();
        let old_id = match old {
            Some(old) if is_again(old.source()) => {
                old.set_known(true);
                return Ok(old);
            }
            // One with other fields is another event.
            old => old.map(|old| old.id()),
        };
        let event = Arc::new(event, GFP_KERNEL)?;
        let mut with = events.without(old_id)?;
        with.put(event.clone())?;
        let before = core::mem::replace(&mut *events, Arc::new(with, GFP_KERNEL)?);
        drop(events);
        // Not under the lock: an event that goes may have a probe.
        drop(before);
        Ok(event)
    }

    /// Adds events whose probes another module has, but those that are known by one of their names. One that
    /// perf hands over gives way, and its id, if nobody records it and it has the same fields. Returns for each
    /// the event, if it was added. May sleep.
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
            let gives_way = |known: &&Arc<Event>| known.gives_way_to(&external);
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
            // The module was here before, at another place.
            for old in called {
                if let Some(place) = all.0.get_mut(old.id() as usize) {
                    *place = None;
                }
            }
            let event = Arc::new(Event::new(id, EventSource::External(external)), GFP_KERNEL)?;
            all.put(event.clone())?;
            added.push(Some(event), GFP_KERNEL)?;
        }
        let before = core::mem::replace(&mut *events, Arc::new(all, GFP_KERNEL)?);
        drop(events);
        drop(before);
        Ok(added)
    }

    /// An event that was withdrawn does not come again. May sleep.
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

    /// The event that `is_meant` among those that keep a list of who records them.
    pub(crate) fn find_listed(
        &self,
        is_meant: impl Fn(&ListedSource) -> bool,
    ) -> Option<Arc<Event>> {
        let events = self.events();
        let mut all = events.iter();
        let event = all.find(|event| event.listed().is_some_and(&is_meant))?;
        Some(event.clone())
    }

    /// An event that was withdrawn is there again. Returns whether it is: another event may have taken its name
    /// since. May sleep.
    pub(crate) fn restore(&self, event: &Event) -> bool {
        let events = self.events.lock();
        let is_kept = events.has(event);
        if is_kept {
            event.set_known(true);
        }
        is_kept
    }

    /// An event cannot fire any more: its module goes, or a user takes it away. May sleep.
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
        names.sort_unstable();
        Ok(Self(names))
    }

    /// The ids of those that are called so, and perhaps of others.
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

/// The tracepoint `name`; says so if the kernel has none.
fn find(tracepoints: &Tracepoints, name: &str) -> Option<Tracepoint> {
    let found = tracepoints.find(name);
    if found.is_none() {
        pr_warn!("this kernel has no tracepoint {name}: its events are not available\n");
    }
    found
}
