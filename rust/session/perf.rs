// SPDX-License-Identifier: GPL-2.0

//! Events that perf hands over: they are known from when somebody asks for one by its name.

use super::{EventFiles, Session, SessionsShared};
use crate::event::Event;
use crate::input::pattern::Pattern;
use crate::source::perf::Perf;
use crate::source::{EventSource, FullName};
use crate::sys::privilege;
use kernel::prelude::*;
use kernel::sync::lock::{mutex::MutexBackend, Guard};
use kernel::sync::{new_mutex, Arc, Mutex};

/// Why an event is refused to who may not see what perf records.
pub(super) const NOT_PERMITTED: &str = "to have events from perf takes CAP_PERFMON";

/// Where the files of events are that come. Who makes events of perf's known, or forgets them, holds the
/// lock, so that nobody else does the same to the same event. Files of events must not want it: they are
/// waited for with it.
#[pin_data]
pub(crate) struct FilesPlace {
    #[pin]
    files: Mutex<Option<Arc<dyn EventFiles>>>,
}

impl FilesPlace {
    /// Nowhere.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                files <- new_mutex!(None),
            }),
            GFP_KERNEL,
        )
    }

    /// Where they are, if they are somewhere, as long as the lock is held.
    pub(super) fn lock(&self) -> Guard<'_, Option<Arc<dyn EventFiles>>, MutexBackend> {
        self.files.lock()
    }

    /// There, from now on. Events that are known already have theirs.
    pub(crate) fn set(&self, files: Option<Arc<dyn EventFiles>>) {
        let before = core::mem::replace(&mut *self.files.lock(), files);
        drop(before);
    }
}

impl Session {
    /// Makes known what `pattern` names: of modules that are not loaded all that it picks, if it names the
    /// subsystem; else that of which it is the whole name, if that is not known and ftrace has it. `EPERM`: that
    /// takes `CAP_PERFMON`. May sleep.
    pub(super) fn ask_for(&self, file: &str, pattern: &Pattern<'_>) -> Result {
        if pattern.enables && pattern.names_subsystem() {
            let picks = |(subsystem, name): FullName<'_>| pattern.matches(subsystem, name);
            self.shared.awaited.ask_for(picks)?;
        }
        let Some((subsystem, name)) = pattern.full_name().filter(|_| pattern.enables) else {
            return Ok(());
        };
        let available = self.available();
        let mut known = available.iter();
        let known = known.find(|event| {
            let mut names = event.names();
            names.any(|known| known == (subsystem, name))
        });
        if let Some(event) = known {
            if event.source().is_there()? {
                return Ok(());
            }
            // Another one may be called so now.
            let files = self.shared.files.lock();
            self.shared.withdraw(event, files.as_deref());
        }
        // Where it is not there it will be; one that comes just now perf may have, and its probe not yet.
        if self.shared.awaited.is_own((subsystem, name))? {
            return Ok(());
        }
        let refuse = |why: &str| self.refuse(fmt!("{file}: '{subsystem}:{name}' {why}"));
        let perf = match Perf::find(subsystem, name, &self.shared.perf_hotplug) {
            Ok(Some(perf)) => perf,
            Ok(None) => return Ok(()),
            Err(EINVAL) => return Err(refuse("has fields that cannot be in a trace")),
            Err(ENODEV) => return Err(refuse("is an event that ftrace does not give to perf")),
            Err(error) => return Err(error),
        };
        if !privilege::may_probe() {
            self.refuse(fmt!("{file}: {NOT_PERMITTED}"));
            return Err(EPERM);
        }
        self.shared.add_perf(perf)
    }
}

impl Session {
    /// Whether the current task may not choose the event, and says so. It is asked when a choice or a trigger is
    /// written: who starts the session may be a trigger's thread, which may do anything.
    pub(super) fn withholds(&self, event: &Event) -> bool {
        let withholds = event.source().is_privileged() && !privilege::may_probe();
        if withholds {
            self.refuse(fmt!("{NOT_PERMITTED}"));
        }
        withholds
    }
}

impl SessionsShared {
    fn add_perf(&self, perf: Arc<Perf>) -> Result {
        let files = self.files.lock();
        match self.registry.add(perf) {
            // Somebody else was faster.
            Err(EEXIST) => Ok(()),
            Ok(event) => self.add_files(&event, files.as_deref()),
            Err(error) => Err(error),
        }
    }

    /// Without `files` the event gets its own when all events do.
    fn add_files(&self, event: &Arc<Event>, files: Option<&dyn EventFiles>) -> Result {
        let added = files.map_or(Ok(()), |files| files.add(event));
        added.inspect_err(|_| self.registry.withdraw(event))
    }

    /// An event goes, and its files.
    pub(super) fn withdraw(&self, event: &Event, files: Option<&dyn EventFiles>) {
        if let Some(files) = files {
            files.remove(event);
        }
        self.registry.withdraw(event);
    }

    /// Events that are gone are known no more, and those that are back again are. May sleep.
    pub(super) fn look_for_perf_events(&self) -> Result {
        let files = self.files.lock();
        let files = files.as_deref();
        for (event, perf) in self.registry.events().of::<Arc<Perf>>() {
            match (event.is_known(), perf.is_there()?) {
                (true, false) => self.withdraw(event, files),
                (false, true) => {
                    self.registry.restore(event);
                    self.add_files(event, files)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}
