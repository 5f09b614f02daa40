// SPDX-License-Identifier: GPL-2.0

//! Events of tracepoints in modules, whose handlers are in another module. They are present while their module is loaded.
//!
//! The module with the handlers registers them first. A handler becomes an event when its tracepoint appears, or when a
//! user selects it before by its name or its subsystem. From then on the registry has the event. It stays the same event
//! when its module is loaded again.
//!
//! That modules come and go is told with locks of the kernel's held ([`modules`](crate::sys::modules)). What must
//! be done there and then is done under the lock here, within which there are only the registry's and
//! those of tracepoints: who is attached is called from before the module's first code to after its last. The rest,
//! files and sessions that had chosen the event under another guise, [follows](FollowModules) in a thread.

mod module;
mod table;

use super::registry::Registry;
use super::Event;
use crate::probe::Probe;
use crate::source::description::Description;
use crate::source::FullName;
use crate::sys::foreign::ForeignModule;
use crate::sys::modules::{Module, ModuleWatch};
use crate::sys::tracepoint::Handler;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};
use module::Awaited;

/// Probes of another module for tracepoints of modules, as that describes them.
pub(crate) trait ModuleProbes: Send + Sync {
    /// How many there are.
    fn count(&self) -> usize;

    /// Subsystem and name of the event at this place; the name is the tracepoint's.
    fn name(&self, place: usize) -> FullName<'_>;

    /// Whether the probe has the prototype that the tracepoint of this name has in that module.
    fn is_for(&self, place: usize, module: &Module<'_>) -> bool;

    /// The event, and its probe. `EINVAL`: it cannot be one.
    fn read(&self, place: usize) -> Result<(Description, Handler<Probe>)>;
}

/// Does what follows when modules have come or gone.
pub(crate) trait FollowModules: Send + Sync {
    /// Has it done, and waits for that; but not for ever, as somebody may hold what is needed for it and wait for
    /// who calls this. May sleep.
    fn follow(&self);
}

/// A change of an event.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// The event is there.
    Came,
    /// It is not there any more.
    Went,
}

/// The probes of all modules that have some.
#[pin_data]
pub(crate) struct AllAwaited {
    registry: Arc<Registry>,
    #[pin]
    all: Mutex<KVec<Arc<Awaited>>>,
    /// The watches that the kernel notifies of modules.
    #[pin]
    watches: Mutex<KVec<Watched>>,
}

/// That those of a module are told of modules.
struct Watched {
    owner: ForeignModule,
    _watch: Pin<KBox<ModuleWatch<Awaited>>>,
}

impl AllAwaited {
    /// None yet.
    pub(crate) fn new(registry: &Arc<Registry>) -> Result<Arc<Self>> {
        let registry = registry.clone();
        Arc::pin_init(
            pin_init!(Self {
                registry,
                all <- new_mutex!(KVec::new()),
                watches <- new_mutex!(KVec::new()),
            }),
            GFP_KERNEL,
        )
    }

    /// Takes the probes of a module. Events of modules that are loaded are there at once. Returns how many probes
    /// there are. If it fails they have to be [given back](Self::remove). May sleep.
    pub(crate) fn add(
        &self,
        owner: ForeignModule,
        probes: KBox<dyn ModuleProbes>,
        follow: Arc<dyn FollowModules>,
    ) -> Result<usize> {
        let count = probes.count();
        if count == 0 {
            return Ok(0);
        }
        let awaited = Awaited::new(owner, probes, &self.registry, follow)?;
        self.all.lock().push(awaited.clone(), GFP_KERNEL)?;
        // Without any lock: those who are told take the kernel's first.
        let watched = Watched {
            owner,
            _watch: ModuleWatch::new(awaited)?,
        };
        self.watches.lock().push(watched, GFP_KERNEL)?;
        Ok(count)
    }

    /// Gives the probes of a module back. None of their events is recorded; shows those that were made to `gone`.
    /// May sleep.
    pub(crate) fn remove(&self, owner: ForeignModule, mut gone: impl FnMut(&Event)) {
        let mut watches = self.watches.lock();
        let at = watches.iter().position(|watched| watched.owner == owner);
        let watch = at.and_then(|at| watches.remove(at).ok());
        drop(watches);
        // Without any lock, as above.
        drop(watch);
        let mut all = self.all.lock();
        let at = all.iter().position(|awaited| awaited.owner() == owner);
        let awaited = at.and_then(|at| all.remove(at).ok());
        drop(all);
        if let Some(awaited) = awaited {
            for made in awaited.give_back().iter().flatten() {
                gone(&made.event);
            }
        }
    }

    /// Calls `each` with the probes of one module after the other.
    fn each(&self, mut each: impl FnMut(&Awaited) -> Result) -> Result {
        let mut at = 0;
        loop {
            // Without the lock: one that is taken out meanwhile has no probes any more.
            let Some(awaited) = self.all.lock().get(at).cloned() else {
                return Ok(());
            };
            each(&awaited)?;
            at += 1;
        }
    }

    /// Makes the events that `picks` picks by their names, whether their modules are loaded or not. May sleep.
    pub(crate) fn ask_for(&self, picks: impl Fn(FullName<'_>) -> bool) -> Result {
        self.each(|awaited| awaited.ask_for(&picks))
    }

    /// Whether `picks` picks one whose module is not loaded.
    pub(crate) fn has(&self, picks: impl Fn(FullName<'_>) -> bool) -> Result<bool> {
        let mut has = false;
        self.each_name(|name| {
            has |= picks(name);
            Ok(())
        })?;
        Ok(has)
    }

    /// Whether an event is one of these, and not another one of that name that a module has now. May sleep.
    pub(crate) fn is_own(&self, name: FullName<'_>) -> Result<bool> {
        let mut is_own = false;
        self.each(|awaited| {
            is_own |= awaited.is_own(name);
            Ok(())
        })?;
        Ok(is_own)
    }

    /// Calls `each` with the names of those whose modules are not loaded.
    pub(crate) fn each_name(&self, mut each: impl FnMut(FullName<'_>) -> Result) -> Result {
        self.each(|awaited| awaited.each_name(&mut each))
    }

    /// Something that has changed, and nobody was told of. May sleep.
    pub(crate) fn next_change(&self) -> Option<(Arc<Event>, Change)> {
        let all = self.all.lock();
        all.iter().find_map(|awaited| awaited.next_change())
    }

    /// Whether events were made since this was called the last time. May sleep.
    pub(crate) fn take_new(&self) -> bool {
        let mut any = false;
        for awaited in self.all.lock().iter() {
            any |= awaited.take_new();
        }
        any
    }
}
