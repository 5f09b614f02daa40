// SPDX-License-Identifier: GPL-2.0

//! Events of programs: their registration, and their end.
//!
//! An event is present while an open file has registered it. Afterwards it is kept, so that it stays the same event when
//! a program registers it again: in a trace that is being recorded, and for filters, triggers and maps. If there are too
//! many events, those that no session needs are forgotten.
//!
//! Lock order: `FilesPlace::registering` > `Session::control`.

use super::{Session, Sessions};
use crate::event::Event;
use crate::input::program::ProgramName;
use crate::input::state::Fields;
use crate::source::description::Description;
use crate::source::program::{ProgramEvent, MAX_VARIANTS};
use crate::source::rings::Rings;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Maximum number of events of programs, those included that no program has registered now. A channel of a trace describes
/// at most as many.
pub(in crate::session) const MAX_EVENTS: usize = 4096;

/// An event that an open file has registered.
pub(crate) struct RegisteredEvent {
    /// The event.
    pub(crate) event: Arc<Event>,
    /// Its source.
    pub(crate) program: Arc<ProgramEvent>,
}

impl Sessions {
    /// Registers events for an open file, in the order of their descriptions, and enables them in the sessions whose
    /// patterns pick them. `done` gets them, also if a later one fails. Errors:
    /// - `ENOSPC`: there are too many events, or too many with this name, or in the trace of a session whose patterns pick
    ///   the event;
    /// - `ENOMEM`; `EINTR`: a signal came while another program registered events.
    ///
    /// May sleep.
    pub(crate) fn register(
        &self,
        descriptions: KVec<Description>,
        done: &mut KVVec<RegisteredEvent>,
    ) -> Result {
        let _turn = self.shared.files.registering.take()?;
        let added = descriptions.into_iter().try_for_each(|description| {
            // A text may have a line twice.
            if done.iter().any(|known| known.program.is(&description)) {
                return Ok(());
            }
            done.reserve(1, GFP_KERNEL)?;
            let registered = self.add_program(description)?;
            Ok(done.push(registered, GFP_KERNEL)?)
        });
        // Enabled before a program can record them.
        let mut enabled = Ok(());
        self.for_each(|session| {
            if enabled.is_ok() {
                enabled = session.programs_came(done);
            }
        });
        if enabled.is_err() {
            done.iter().for_each(|registered| self.leave(registered));
            done.clear();
        }
        enabled.and(added)
    }

    /// The rings of programs.
    pub(crate) fn rings(&self) -> &Arc<Rings> {
        &self.shared.rings
    }

    /// Ends the use of events by an open file. May sleep.
    pub(crate) fn unregister(&self, all: &[RegisteredEvent]) {
        if !all.is_empty() {
            let _turn = self.shared.files.registering.take_anyway();
            all.iter().for_each(|registered| self.leave(registered));
        }
    }

    /// The description of a present event of this name whose records can have these fields.
    pub(crate) fn program_for(
        &self,
        name: ProgramName<'_>,
        fields: Fields<'_>,
    ) -> Result<Option<Description>> {
        let events = self.shared.registry.events();
        for (event, program) in events.of::<Arc<ProgramEvent>>() {
            let is_meant = event.is_known() && program.is_called(name);
            if is_meant
                && program
                    .append(&mut fields.clone(), &mut KVVec::new())
                    .is_ok()
            {
                return program.description().try_clone().map(Some);
            }
        }
        Ok(None)
    }

    /// Makes the event of a description present, with one user more.
    fn add_program(&self, description: Description) -> Result<RegisteredEvent> {
        let events = self.shared.registry.events();
        let mut all = events.of::<Arc<ProgramEvent>>();
        let (event, program) = match all.find(|(_, program)| program.is(&description)) {
            Some((event, program)) => {
                let (event, program) = (event.clone(), program.clone());
                if !event.is_known() {
                    self.shared.registry.restore(&event);
                    self.publish(&event)?;
                }
                (event, program)
            }
            None => {
                let variant = match self.variant_for(&description) {
                    Err(ENOSPC) => {
                        self.forget_programs();
                        self.variant_for(&description)
                    }
                    variant => variant,
                };
                let program = ProgramEvent::new(description, variant?, &self.shared.rings)?;
                let event = self.shared.registry.add(program.clone())?;
                self.publish(&event)?;
                (event, program)
            }
        };
        let users = program.users();
        users.store(users.load().wrapping_add(1));
        Ok(RegisteredEvent { event, program })
    }

    /// Creates the files of an event that is known from now on.
    fn publish(&self, event: &Arc<Event>) -> Result {
        let files = self.shared.files.get_arc().ok_or(ENODEV)?;
        files
            .follow(event)
            .inspect_err(|_| self.shared.withdraw(event))
    }

    /// The number of a new event among those of its name. `ENOSPC`: there are too many.
    fn variant_for(&self, description: &Description) -> Result<u32> {
        let events = self.shared.registry.events();
        if events.of::<Arc<ProgramEvent>>().count() >= MAX_EVENTS {
            return Err(ENOSPC);
        }
        let mut free = 1..=MAX_VARIANTS;
        let is_free = |variant: &u32| {
            let mut all = events.of::<Arc<ProgramEvent>>();
            !all.any(|(_, known)| known.is_namesake(description) && known.variant() == *variant)
        };
        free.find(is_free).ok_or(ENOSPC)
    }

    /// Forgets the events that no program has registered now and no session needs. May sleep.
    fn forget_programs(&self) {
        for (event, _) in self.shared.registry.events().of::<Arc<ProgramEvent>>() {
            if event.is_known() {
                continue;
            }
            let mut is_needed = false;
            self.for_each(|session| is_needed |= session.needs(event));
            if !is_needed {
                self.forget(event);
                // Without memory the event stays.
                let _ = self.shared.registry.forget(event);
            }
        }
    }

    /// Ends one use of an event. Its last user withdraws it.
    fn leave(&self, registered: &RegisteredEvent) {
        let users = registered.program.users();
        users.store(users.load().wrapping_sub(1));
        if users.load() == 0 {
            self.shared.withdraw(&registered.event);
        }
    }
}

impl Session {
    /// Enables those of the new events that the patterns of a channel pick, sets the triggers of patterns at the events, and
    /// records the enabled ones. On failure no event is enabled. May sleep.
    fn programs_came(&self, new: &[RegisteredEvent]) -> Result {
        if new.is_empty() {
            return Ok(());
        }
        let _control = self.control.lock();
        let mut enabled = KVVec::new();
        let picked = self.enable_programs(new, &mut enabled);
        let triggered = picked.and_then(|()| self.trigger_programs(new));
        triggered.and_then(|()| self.record_all()).inspect_err(|_| {
            let mut state = self.state.lock();
            for &(at, index) in &enabled {
                let channel = state.settings.channels_mut().nth(at);
                if let (Some(channel), Some(registered)) = (channel, new.get(index)) {
                    // A removal needs no memory.
                    let _ = channel.selection.set(&registered.event, false);
                }
            }
        })
    }

    /// Enables the events. `enabled` gets the index of each channel and that of the event.
    fn enable_programs(
        &self,
        new: &[RegisteredEvent],
        enabled: &mut KVVec<(usize, usize)>,
    ) -> Result {
        let mut state = self.state.lock();
        for (at, channel) in state.settings.channels_mut().enumerate() {
            for (index, RegisteredEvent { event, .. }) in new.iter().enumerate() {
                if !channel.selection.has(event) && channel.standing.picks(event) {
                    enabled.push((at, index), GFP_KERNEL)?;
                    channel.selection.set(event, true)?;
                }
            }
        }
        Ok(())
    }

    /// Whether an event that is absent must stay the same event: it is enabled by more than a pattern, or has a filter, a
    /// trigger of its own, or a map.
    fn needs(&self, event: &Event) -> bool {
        let is_chosen = {
            let state = self.state.lock();
            let mut channels = state.settings.channels();
            channels.any(|(_, channel)| {
                let is_enabled = channel.selection.has(event) && !channel.standing.picks(event);
                is_enabled || channel.filters.get(event.id()).is_some()
            })
        };
        is_chosen || self.has_own_trigger(event) || self.has_map(event)
    }
}
