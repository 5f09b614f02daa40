// SPDX-License-Identifier: GPL-2.0

//! Events of tracepoints in modules, whose handlers are in another module. They are present while their module
//! is loaded.
//!
//! The module with the handlers registers them first. A handler becomes an event when its tracepoint appears, or when a
//! user selects it before by its name or its subsystem. From then on the registry has the event. It stays the same event
//! when its module is loaded again.
//!
//! The kernel's notifier runs with locks of the kernel held ([`modules`](crate::sys::modules)). The part that
//! must be done there is done under the lock here. Only the locks of the registry and of tracepoints nest
//! within it. Handlers are called from before the module's first code to after its last. The other part, files
//! and sessions that record the event through perf, [follows](FollowModules) in a thread.

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

/// The probes of a module for tracepoints of modules, as it describes them.
pub(crate) trait ModuleProbes: Send + Sync {
    /// Number of probes.
    fn count(&self) -> usize;

    /// Subsystem and name of the event at this index. The name is the tracepoint's.
    fn name(&self, place: usize) -> FullName<'_>;

    /// Whether the probe fits the prototype of the tracepoint with this name in `module`.
    fn is_for(&self, place: usize, module: &Module<'_>) -> bool;

    /// The event and its probe. `EINVAL`: the description is not valid.
    fn read(&self, place: usize) -> Result<(Description, Handler<Probe>)>;
}

/// Executes the deferred work after modules were loaded or unloaded.
pub(crate) trait FollowModules: Send + Sync {
    /// Executes the work and waits for its end, but not for ever: another task may hold a lock that the work
    /// needs, and wait for the caller. May sleep.
    fn follow(&self);
}

/// The probes of all modules that have registered some.
#[pin_data]
pub(crate) struct AllAwaited {
    registry: Arc<Registry>,
    #[pin]
    all: Mutex<KVec<Arc<Awaited>>>,
    /// The watches that the kernel notifies of modules.
    #[pin]
    watches: Mutex<KVec<Watched>>,
}

/// The watch of one module's probes.
struct Watched {
    owner: ForeignModule,
    _watch: Pin<KBox<ModuleWatch<Awaited>>>,
}

impl AllAwaited {
    /// Without probes.
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

    /// Adds the probes of a module. Events of loaded modules are present at once. Returns the number of probes.
    /// After a failure the caller must [remove](Self::remove) them. May sleep.
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
        // No lock is held: a notification takes the kernel's lock first.
        let watched = Watched {
            owner,
            _watch: ModuleWatch::new(awaited)?,
        };
        self.watches.lock().push(watched, GFP_KERNEL)?;
        Ok(count)
    }

    /// Removes the probes of a module. None of their events is recorded. Calls `gone` with each event that was
    /// created. May sleep.
    pub(crate) fn remove(&self, owner: ForeignModule, mut gone: impl FnMut(&Arc<Event>)) {
        let mut watches = self.watches.lock();
        let at = watches.iter().position(|watched| watched.owner == owner);
        let watch = at.and_then(|at| watches.remove(at).ok());
        drop(watches);
        // No lock is held, as above.
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

    /// The probes of each module. The list is not locked between two of them. A module that is removed at the same time
    /// has no probes any more.
    fn iter(&self) -> impl Iterator<Item = Arc<Awaited>> + '_ {
        (0..).map_while(|at| self.all.lock().get(at).cloned())
    }

    /// Creates the events that `picks` selects by name, whether their modules are loaded or not. May sleep.
    pub(crate) fn ask_for(&self, picks: impl Fn(FullName<'_>) -> bool) -> Result {
        self.iter().try_for_each(|awaited| awaited.ask_for(&picks))
    }

    /// Whether `picks` selects an event whose module is not loaded.
    pub(crate) fn has(&self, picks: impl Fn(FullName<'_>) -> bool) -> Result<bool> {
        let mut has = false;
        self.each_name(|name| {
            has |= picks(name);
            Ok(())
        })?;
        Ok(has)
    }

    /// Whether an event with this name is one of these, and not a different event of a loaded module. May
    /// sleep.
    pub(crate) fn is_own(&self, name: FullName<'_>) -> bool {
        self.iter().any(|awaited| awaited.is_own(name))
    }

    /// Calls `each` with the names of the events whose modules are not loaded.
    pub(crate) fn each_name(&self, mut each: impl FnMut(FullName<'_>) -> Result) -> Result {
        self.iter()
            .try_for_each(|awaited| awaited.each_name(&mut each))
    }

    /// The next event that became present, or is not present any more, and was not returned yet. May sleep.
    pub(crate) fn next_change(&self) -> Option<Arc<Event>> {
        self.iter().find_map(|awaited| awaited.next_change())
    }

    /// Whether events were created since the previous call. May sleep.
    pub(crate) fn take_new(&self) -> bool {
        let news = self.iter().map(|awaited| awaited.take_new());
        news.fold(false, |any, new| any | new)
    }
}
