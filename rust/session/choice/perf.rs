// SPDX-License-Identifier: GPL-2.0

//! Events that are recorded through perf. An event becomes known when a user requests it by its name.

use crate::event::awaited::FollowModules;
use crate::event::Event;
use crate::input::pattern::Pattern;
use crate::session::{EventFiles, Session, SessionsShared};
use crate::source::perf::Perf;
use crate::source::{EventSource, FullName};
use crate::sys::privilege::Rights;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Reason why an event of perf is refused to a user who may not see it.
pub(in crate::session) const NOT_PERMITTED: &str =
    "CAP_PERFMON is needed for events that rtrace gets from perf";

impl Session {
    /// Makes events known that `pattern` names. For modules that are not loaded: all matching events, if the
    /// pattern names the subsystem. Otherwise the event whose full name it is, if ftrace has it. `EPERM`: the file
    /// may not probe. May sleep.
    pub(in crate::session) fn ask_for(
        &self,
        file: &str,
        pattern: &Pattern<'_>,
        rights: Rights,
    ) -> Result {
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
            self.shared.withdraw(event);
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
    /// Checks that a file with these rights may select the event. `EPERM`: it may not. The check is made when a
    /// selection or a trigger is written, because a start has no rights: it may run in a trigger's thread.
    pub(in crate::session) fn check_rights(&self, event: &Event, rights: Rights) -> Result {
        if event.source().is_privileged() && !rights.may_probe {
            self.refuse(fmt!("{NOT_PERMITTED}"));
            return Err(EPERM);
        }
        Ok(())
    }
}

impl SessionsShared {
    fn add_perf(&self, perf: Arc<Perf>) -> Result {
        match self.registry.add(perf) {
            // Another task has added the event first.
            Err(EEXIST) => Ok(()),
            Ok(event) => self.follow(&event).inspect_err(|_| self.withdraw(&event)),
            Err(error) => Err(error),
        }
    }

    /// See [`EventFiles::follow`]. Without a creator of files, they are created when all events get theirs.
    fn follow(&self, event: &Arc<Event>) -> Result {
        let files = self.files.get_arc();
        files.map_or(Ok(()), |files| files.follow(event))
    }

    /// Removes an event and its files.
    pub(in crate::session) fn withdraw(&self, event: &Arc<Event>) {
        self.registry.withdraw(event);
        // A removal does not fail.
        let _ = self.follow(event);
    }

    /// Withdraws events that are gone, and restores those that are back. A thread changes their files; this waits for
    /// it, but not for readers of the directories. May sleep.
    pub(in crate::session) fn look_for_perf_events(&self) -> Result {
        let mut any = false;
        for (event, perf) in self.registry.events().of::<Arc<Perf>>() {
            match (event.is_known(), perf.is_there()?) {
                (true, false) => self.registry.withdraw(event),
                (false, true) => {
                    self.registry.restore(event);
                }
                _ => continue,
            }
            any = true;
        }
        if any {
            self.follower.follow();
        }
        Ok(())
    }

    /// Creates and removes the files of events that are recorded through perf.
    pub(in crate::session) fn follow_perf_events(&self, files: &dyn EventFiles) {
        for (event, _) in self.registry.events().of::<Arc<Perf>>() {
            show(files, event);
        }
    }
}

/// Creates or removes the files of an event. If that fails, a kernel message reports it.
pub(in crate::session) fn show(files: &dyn EventFiles, event: &Arc<Event>) {
    if files.follow(event).is_err() {
        let (subsystem, name) = (event.subsystem(), event.name());
        pr_warn!("no memory for the files of {subsystem}:{name}: choose it by set_event\n");
    }
}
