// SPDX-License-Identifier: GPL-2.0

//! The root object of the module.

use crate::channel::config::Config;
use crate::channel::dump::Listing;
use crate::context::user_stack::UserStacks;
use crate::event::awaited::{AllAwaited, ModuleProbes};
use crate::event::registry::Registry;
use crate::event::Event;
use crate::file::{self, Files};
use crate::session::{
    DeferredWork, FilesPlace, Follower, Leaps, Regions, Sessions, SessionsShared,
};
use crate::source::external::External;
use crate::source::rings::Rings;
use crate::source::EventSource;
use crate::sys::debugfs;
use crate::sys::debugfs::tree::{Mountable, Tree};
use crate::sys::foreign::ForeignModule;
use crate::sys::hotplug::Hotplug;
use crate::sys::system;
use kernel::prelude::*;
use kernel::sync::{Arc, UniqueArc};

/// A loaded tracer. The drop removes the files, and then ends running traces.
// Fields in the order of the drop.
pub(crate) struct Tracer {
    _mountable: Mountable,
    files: Arc<Files>,
    _serving: DeferredWork,
    sessions: Arc<Sessions>,
    registry: Arc<Registry>,
}

impl Tracer {
    /// Registers the events of this kernel and creates the default session with the defaults `config`. Starts
    /// the session if the module's parameters say so, and creates the files. May sleep.
    pub(crate) fn new(config: Config) -> Result<Arc<Self>> {
        let hotplug = Hotplug::new(c"trace/rtrace:prepare", c"trace/rtrace:online")?;
        let perf_hotplug = Hotplug::new(c"trace/rtrace_perf:prepare", c"trace/rtrace_perf:online")?;
        let perf_hotplug = Arc::new(perf_hotplug, GFP_KERNEL)?;
        let timer_hotplug =
            Hotplug::new(c"trace/rtrace_timer:prepare", c"trace/rtrace_timer:online")?;
        let map_hotplug = Hotplug::new(c"trace/rtrace_map:prepare", c"trace/rtrace_map:online")?;
        let registry = Registry::new(&perf_hotplug)?;
        let worker = Sessions::worker()?;
        let sessions = Sessions::new(SessionsShared {
            registry: registry.clone(),
            awaited: AllAwaited::new(&registry)?,
            hotplug: Arc::new(hotplug, GFP_KERNEL)?,
            perf_hotplug,
            map_hotplug: Arc::new(map_hotplug, GFP_KERNEL)?,
            timer_hotplug: Arc::new(timer_hotplug, GFP_KERNEL)?,
            user_stacks: UserStacks::new()?,
            defaults: config,
            boot_id: system::boot_id()?,
            leaps: Arc::new(Leaps::new(&worker), GFP_KERNEL)?,
            worker,
            follower: Follower::new()?,
            files: FilesPlace::new()?,
            listing: Listing::new()?,
            regions: Regions::new()?,
            rings: Rings::new()?,
        })?;
        let serving = DeferredWork::new(&sessions)?;
        file::apply_parameters(&sessions)?;
        let tracer = UniqueArc::<Self>::new_uninit(GFP_KERNEL)?;
        // Last: after this the initialisation cannot fail.
        let tree = Tree::new("rtrace")?;
        let files = Files::new(&tree, &sessions).and_then(|files| {
            let mountable = Mountable::new(&tree)?;
            Ok((mountable, files))
        });
        let (mountable, files) = files.inspect_err(|error| {
            pr_err!(
                "cannot make the files in debugfs or those of the file system rtrace ({error:?})\n"
            );
            // Some files may have been visible for a moment.
            debugfs::wait_for_refused();
        })?;
        let tracer = tracer.write(Self {
            _mountable: mountable,
            files,
            _serving: serving,
            sessions,
            registry,
        });
        Ok(tracer.into())
    }

    /// Adds an event or an AUX source of another module. Returns the earlier source if it was registered before. May sleep.
    pub(crate) fn add_source<S: EventSource + Clone>(&self, source: S) -> Result<S> {
        let event = self.registry.add(source)?;
        let source = event.source_as::<S>().ok_or(EINVAL)?;
        self.publish(&event)?;
        Ok(source.clone())
    }

    /// Makes a new event visible.
    fn publish(&self, event: &Arc<Event>) -> Result {
        self.files
            .follow(event)
            .inspect_err(|_| self.registry.withdraw(event))?;
        self.sessions.events_came();
        Ok(())
    }

    /// Adds the events for which a module has handlers: for tracepoints of the kernel, and for tracepoints of
    /// modules. Returns the number of new events of the first kind, plus the number of handlers of the second
    /// kind. May sleep.
    pub(crate) fn add_probes(
        &self,
        owner: ForeignModule,
        externals: KVVec<External>,
        probes: KBox<dyn ModuleProbes>,
    ) -> Result<usize> {
        let added = self.add_external(externals)?;
        let awaited = self.sessions.add_probes(owner, probes);
        let awaited = awaited.inspect_err(|_| self.remove_probes(owner))?;
        Ok(added + awaited)
    }

    fn add_external(&self, externals: KVVec<External>) -> Result<usize> {
        let added = self.registry.add_external(externals)?;
        let mut count = 0;
        for (place, event) in added.iter().enumerate() {
            let Some(event) = event else {
                continue;
            };
            if let Err(error) = self.files.follow(event) {
                let (before, after) = added.split_at(place);
                before.iter().flatten().for_each(|event| self.remove(event));
                let after = after.iter().flatten();
                after.for_each(|event| self.registry.withdraw(event));
                return Err(error);
            }
            count += 1;
        }
        self.sessions.events_came();
        Ok(count)
    }

    /// Removes the events of a module, none of which is recorded. May sleep.
    pub(crate) fn remove_probes(&self, owner: ForeignModule) {
        self.sessions.remove_probes(owner);
        for event in self.registry.events().iter() {
            if event.source().is_of(owner) {
                self.remove(event);
            }
        }
    }

    fn remove(&self, event: &Arc<Event>) {
        self.registry.withdraw(event);
        // A removal does not fail.
        let _ = self.files.follow(event);
    }

    /// Removes an event that its module will not emit any more, or an AUX source that it will not write. May sleep.
    pub(crate) fn remove_source<T: 'static>(&self, source: &Arc<T>)
    where
        Arc<T>: EventSource,
    {
        let events = self.registry.events();
        let mut known = events.of().filter(|(event, _)| event.is_known());
        if let Some((event, _)) = known.find(|(_, known)| Arc::ptr_eq(known, source)) {
            self.remove(event);
        }
    }
}
