// SPDX-License-Identifier: GPL-2.0

//! Dynamic events: their definition and removal.

use super::Sessions;
use crate::event::registry::Events;
use crate::event::Event;
use crate::input::caret::Caret;
use crate::input::dynamic::{Definition, Name, FILE_SUBSYSTEM, SUBSYSTEM};
use crate::source::dynamic::{Dynamic, NoEvent, RetiredHooks};
use crate::sys::debugfs::text::Text;
use crate::sys::privilege::Rights;
use crate::sys::signal;
use crate::sys::turn::Turn;
use core::fmt::Write;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// Creates and removes the files of events.
///
/// The calls may wait without limit for a reader of a directory, so the caller must hold no lock that other operations
/// need.
pub(crate) trait EventFiles: Send + Sync {
    /// Creates the files of an event that is present, or removes those of one that is not and waits for their users. Does
    /// nothing if that is so already. An error leaves a present event without files.
    fn follow(&self, event: &Arc<Event>) -> Result;
}

/// The creator of events' files, while there is one.
#[pin_data]
pub(crate) struct FilesPlace {
    #[pin]
    files: Mutex<Option<Arc<dyn EventFiles>>>,
    /// Taken by a writer of dynamic events.
    #[pin]
    defining: Turn,
    /// Taken by a program that registers events, and by the end of its registrations.
    #[pin]
    pub(super) registering: Turn,
}

impl FilesPlace {
    /// Without a creator.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let place = pin_init!(Self {
            files <- new_mutex!(None),
            defining <- Turn::new(),
            registering <- Turn::new(),
        });
        Arc::pin_init(place, GFP_KERNEL)
    }

    /// The creator, if there is one.
    pub(super) fn get_arc(&self) -> Option<Arc<dyn EventFiles>> {
        self.files.lock().clone()
    }

    /// Sets the creator. The events that are known already have files.
    pub(super) fn set(&self, files: Option<Arc<dyn EventFiles>>) {
        let before = core::mem::replace(&mut *self.files.lock(), files);
        drop(before);
    }
}

/// Result of one line.
enum Done {
    Added(Arc<Event>),
    Removed(Arc<Event>),
}

impl Sessions {
    /// Executes the lines of `text`, for a file with these rights. With `replaces`, first removes all dynamic events. If a line is refused,
    /// everything stays unchanged, and `error_log` of the default session gives the reason. Errors: `EBUSY` if
    /// an event to remove is recorded, `EPERM` without `CAP_PERFMON`, `EINTR` if a signal came while another writer
    /// worked. May sleep.
    pub(crate) fn define(&self, file: &str, text: &str, replaces: bool, rights: Rights) -> Result {
        self.may_define(file, rights)?;
        // One writer at a time: two could undo each other's work.
        let turn = self.shared.files.defining.take()?;
        let files = self.shared.files.get_arc().ok_or(ENODEV)?;
        let files = &*files;
        let mut done = KVec::new();
        let result = self.define_lines(file, text, replaces, files, &mut done);
        if result.is_err() {
            let mut hooks = RetiredHooks::new();
            while let Some(last) = done.pop() {
                self.undo(last, files, &mut hooks);
            }
            return result;
        }
        drop(turn);
        self.end_removed(&done);
        self.events_came();
        Ok(())
    }

    /// Refuses rights that do not suffice to define and to delete events: `EPERM`.
    pub(crate) fn may_define(&self, file: &str, rights: Rights) -> Result {
        if rights.may_probe {
            return Ok(());
        }
        self.default().refuse(fmt!(
            "{file}: CAP_PERFMON is needed, because a defined event can read the kernel's memory"
        ));
        Err(EPERM)
    }

    /// Deletes the dynamic events of a subsystem, except those that are recorded. May sleep.
    pub(crate) fn undefine(&self, subsystem: &str) {
        let turn = self.shared.files.defining.take_anyway();
        let mut done = KVec::new();
        for (event, dynamic) in dynamic(&self.shared.registry.events()) {
            if event.subsystem() == subsystem && !dynamic.is_recorded() {
                // Without memory the event stays.
                let _ = self.take_away("on_close", event, &mut done);
            }
        }
        drop(turn);
        self.end_removed(&done);
    }

    fn define_lines(
        &self,
        file: &str,
        text: &str,
        replaces: bool,
        files: &dyn EventFiles,
        done: &mut KVec<Done>,
    ) -> Result {
        if replaces {
            for (event, _) in dynamic(&self.shared.registry.events()) {
                self.take_away(file, event, done)?;
            }
        }
        for line in text.lines() {
            signal::go_on()?;
            if line.trim().is_empty() || line.trim_start().starts_with('#') {
                continue;
            }
            let wrong = |at, reason: &dyn core::fmt::Display| {
                let text = line;
                let caret = Caret { text, at, reason };
                self.default()
                    .refuse(format_args!("{file}: this cannot be an event\n{caret}"))
            };
            match Definition::parse(line).map_err(|error| wrong(error.at, &error.reason))? {
                Definition::Remove(name) => {
                    let events = self.shared.registry.events();
                    let mut events = dynamic(&events).map(|(event, _)| event);
                    let Some(event) = events.find(|event| is_called(event, &name)) else {
                        wrong(line.len(), &"there is no such dynamic event");
                        return Err(ENOENT);
                    };
                    self.take_away(file, event, done)?;
                }
                Definition::Add(probe) => {
                    let no_event = |refusal: NoEvent<'_>| {
                        wrong(refusal.position(), &refusal);
                        refusal.error()
                    };
                    done.reserve(1, GFP_KERNEL)?;
                    let dynamic = Dynamic::new(probe).map_err(no_event)?;
                    let event = self.shared.registry.add(dynamic).inspect_err(|_| {
                        wrong(0, &"there is an event of that name");
                    })?;
                    files
                        .follow(&event)
                        .inspect_err(|_| self.shared.registry.withdraw(&event))?;
                    done.push(Done::Added(event), GFP_KERNEL)?;
                }
            }
        }
        Ok(())
    }

    fn take_away(&self, file: &str, event: &Arc<Event>, done: &mut KVec<Done>) -> Result {
        let dynamic = event.source_as::<Arc<Dynamic>>();
        if dynamic.is_some_and(|dynamic| dynamic.is_recorded()) {
            let (subsystem, name) = (event.subsystem(), event.name());
            self.default()
                .refuse(fmt!("{file}: {subsystem}/{name} is recorded now"));
            return Err(EBUSY);
        }
        done.push(Done::Removed(event.clone()), GFP_KERNEL)?;
        self.shared.withdraw(event);
        Ok(())
    }

    fn undo(&self, done: Done, files: &dyn EventFiles, hooks: &mut RetiredHooks) {
        match done {
            Done::Added(event) => {
                self.shared.withdraw(&event);
                self.end(&event, hooks);
            }
            Done::Removed(event) => {
                if !self.shared.registry.restore(&event) {
                    let (subsystem, name) = (event.subsystem(), event.name());
                    pr_warn!("{subsystem}/{name} stays deleted: another event has its name now\n");
                } else if files.follow(&event).is_err() {
                    pr_warn!("no memory for the files of an event that was not deleted: choose it by set_event\n");
                }
            }
        }
    }

    /// Ends the events that were removed. May sleep.
    fn end_removed(&self, done: &[Done]) {
        let mut hooks = RetiredHooks::new();
        for done in done {
            if let Done::Removed(event) = done {
                self.end(event, &mut hooks);
            }
        }
    }

    /// Ends a removed event. Only the description in traces remains. `hooks` gets its hook.
    fn end(&self, event: &Event, hooks: &mut RetiredHooks) {
        if let Some(dynamic) = event.source_as::<Arc<Dynamic>>() {
            dynamic.retire(hooks);
        }
        self.forget(event);
        // Without memory the event stays in the registry, where it cannot be found.
        let _ = self.shared.registry.forget(event);
    }

    /// Writes the lines that define the dynamic events.
    pub(crate) fn write_definitions(&self, out: &mut Text) -> Result {
        for (_, dynamic) in dynamic(&self.shared.registry.events()) {
            writeln!(out, "{}", dynamic.definition())?;
        }
        Ok(())
    }

    /// Writes how many times each dynamic event was missed: `SUBSYSTEM/EVENT N`.
    pub(crate) fn write_missed(&self, out: &mut Text) -> Result {
        for (event, dynamic) in dynamic(&self.shared.registry.events()) {
            let (subsystem, name) = (event.subsystem(), event.name());
            write!(out, "{subsystem}/{name} {}", dynamic.missed())?;
            if let Some(unreturned) = dynamic.unreturned() {
                write!(out, " {unreturned}")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

/// The dynamic events that are present.
fn dynamic(events: &Events) -> impl Iterator<Item = (&Arc<Event>, &Arc<Dynamic>)> {
    events.of().filter(|(event, _)| event.is_known())
}

fn is_called(event: &Event, name: &Name<'_>) -> bool {
    let subsystem = event.subsystem();
    let is_there = match name.subsystem {
        Some(known) => known == subsystem,
        None => [SUBSYSTEM, FILE_SUBSYSTEM].contains(&subsystem),
    };
    is_there && event.name() == name.event
}
