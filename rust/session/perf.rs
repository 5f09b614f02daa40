// SPDX-License-Identifier: GPL-2.0

//! Events that are recorded through perf. An event becomes known when a user requests it by its name.

use super::{EventFiles, Session, SessionsShared};
use crate::event::Event;
use crate::input::pattern::Pattern;
use crate::source::perf::Perf;
use crate::source::{EventSource, FullName};
use crate::sys::privilege::Rights;
use kernel::prelude::*;
use kernel::sync::lock::{mutex::MutexBackend, Guard};
use kernel::sync::{new_mutex, Arc, Mutex};

/// Reason why an event of perf is refused to a user who may not see it.
pub(super) const NOT_PERMITTED: &str =
    "CAP_PERFMON is needed for events that rtrace gets from perf";

/// The creator of events' files. Code that adds or removes an event of perf holds the lock, so that no other
/// code does the same for the same event. The functions of events' files must not take this lock: its holder
/// waits for them.
#[pin_data]
pub(crate) struct FilesPlace {
    #[pin]
    files: Mutex<Option<Arc<dyn EventFiles>>>,
}

impl FilesPlace {
    /// Without a creator.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                files <- new_mutex!(None),
            }),
            GFP_KERNEL,
        )
    }

    /// Takes the lock. Returns the creator, if there is one.
    pub(super) fn lock(&self) -> Guard<'_, Option<Arc<dyn EventFiles>>, MutexBackend> {
        self.files.lock()
    }

    /// Sets the creator. The events that are known already have files.
    pub(crate) fn set(&self, files: Option<Arc<dyn EventFiles>>) {
        let before = core::mem::replace(&mut *self.files.lock(), files);
        drop(before);
    }
}

impl Session {
    /// Makes events known that `pattern` names. For modules that are not loaded: all matching events, if the
    /// pattern names the subsystem. Otherwise the event whose full name it is, if ftrace has it. `EPERM`: the file
    /// may not probe. May sleep.
    pub(super) fn ask_for(&self, file: &str, pattern: &Pattern<'_>, rights: Rights) -> Result {
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
            // Another event may have the same name now.
            let files = self.shared.files.lock();
            self.shared.withdraw(event, files.as_deref());
        }
        // The event may appear later. While its module is being loaded, perf may have it before the module's
        // probe is known.
        if self.shared.awaited.is_own((subsystem, name)) {
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
        if !rights.may_probe {
            self.refuse(fmt!("{file}: {NOT_PERMITTED}"));
            return Err(EPERM);
        }
        self.shared.add_perf(perf)
    }
}

impl Session {
    /// Whether a file with these rights may not select the event; if so, notes the reason. The check is made when a
    /// selection or a trigger is written, because a start has no rights: it may run in a trigger's thread.
    pub(super) fn withholds(&self, event: &Event, rights: Rights) -> bool {
        let withholds = event.source().is_privileged() && !rights.may_probe;
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
            // Another task has added the event first.
            Err(EEXIST) => Ok(()),
            Ok(event) => self.add_files(&event, files.as_deref()),
            Err(error) => Err(error),
        }
    }

    /// Creates an event's files. Without `files`, they are created when all events get theirs.
    fn add_files(&self, event: &Arc<Event>, files: Option<&dyn EventFiles>) -> Result {
        let added = files.map_or(Ok(()), |files| files.add(event));
        added.inspect_err(|_| self.registry.withdraw(event))
    }

    /// Removes an event and its files.
    pub(super) fn withdraw(&self, event: &Event, files: Option<&dyn EventFiles>) {
        if let Some(files) = files {
            files.remove(event);
        }
        self.registry.withdraw(event);
    }

    /// Removes events that are gone, and adds those that are back. May sleep.
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
