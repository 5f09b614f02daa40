// SPDX-License-Identifier: GPL-2.0

//! The selection of the events that a channel of a session records.

use super::patterns::picks;
use super::perf::NOT_PERMITTED;
use super::standing::StandingPatterns;
use crate::channel::config::RecordSource;
use crate::event::registry::Events;
use crate::event::Event;
use crate::input::pattern::Pattern;
use crate::session::{ChannelId, ChannelSettings, Enabled, Selection, Session};
use crate::source::aux;
use crate::source::FullName;
use crate::sys::privilege::Rights;
use crate::sys::signal;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::Arc;

impl Session {
    /// The events that are known now.
    pub(crate) fn available(&self) -> Arc<Events> {
        self.shared.registry.events()
    }

    /// Calls `each` with the names of the events of modules that are not loaded.
    pub(crate) fn each_awaited(&self, each: impl FnMut(FullName<'_>) -> Result) -> Result {
        self.shared.awaited.each_name(each)
    }

    /// Enables or disables one event. An active trace follows at once.
    pub(crate) fn set_enabled(
        &self,
        channel: ChannelId,
        event: &Event,
        enabled: bool,
        rights: Rights,
    ) -> Result {
        self.change(channel, rights, |settings| {
            settings.standing.set(event, enabled)?;
            settings.selection.set(event, enabled)
        })
    }

    /// Enables the present events of a subsystem, or of all; or disables those that are enabled, present or not. An active
    /// trace follows at once.
    pub(crate) fn set_all_enabled(
        &self,
        channel: ChannelId,
        subsystem: Option<&str>,
        enabled: bool,
        rights: Rights,
    ) -> Result {
        let not = if enabled { "" } else { "!" };
        let word = CString::try_from_fmt(fmt!("{not}{}:*", subsystem.unwrap_or("*")))?;
        self.change(channel, rights, |settings| {
            let picks = |event: &Event| {
                let is_of = subsystem.is_none_or(|subsystem| event.subsystem() == subsystem);
                is_of && !(enabled && event.is_awaited())
            };
            self.for_each_picked(picks, |event| settings.selection.set(event, enabled))?;
            settings.standing.add(word.to_str()?)?;
            Ok(())
        })
    }

    /// Enables and disables events by patterns, in the form of the `set_event` file. With `replace`, all other
    /// events are disabled. On failure nothing changes.
    pub(crate) fn set_by_patterns(
        &self,
        channel: ChannelId,
        patterns: &str,
        rights: Rights,
        replace: bool,
    ) -> Result {
        for word in patterns.split_ascii_whitespace() {
            signal::go_on()?;
            self.ask_for("set_event", &Pattern::parse(word), rights)?;
        }
        self.change(channel, rights, |settings| {
            let ChannelSettings {
                selection,
                standing,
                ..
            } = settings;
            if replace {
                (*selection, *standing) = (Selection::NONE, StandingPatterns::NONE);
            }
            for word in patterns.split_ascii_whitespace() {
                let pattern = Pattern::parse(word);
                let is_match = self.for_each_picked(
                    |event| picks(&pattern, event),
                    |event| selection.set(event, pattern.enables),
                )?;
                let is_standing = pattern.is_of_programs();
                if !is_match && !is_standing && (pattern.enables || !self.awaits(&pattern)?) {
                    return Err(self.refuse(fmt!("set_event: '{word}' matches no event")));
                }
                standing.add(word).inspect_err(|&error| {
                    if error == ENOSPC {
                        self.refuse(fmt!("set_event: too many patterns for events of programs"));
                    }
                })?;
            }
            Ok(())
        })
    }

    /// Whether the pattern matches events of modules that are not loaded.
    fn awaits(&self, pattern: &Pattern<'_>) -> Result<bool> {
        let picks = |(subsystem, name): FullName<'_>| pattern.matches(subsystem, name);
        self.shared.awaited.has(picks)
    }

    /// Changes what a channel records, for a file with these rights. An active trace follows at once. On failure
    /// nothing changes.
    pub(in crate::session) fn change(
        &self,
        channel: ChannelId,
        rights: Rights,
        change: impl FnOnce(&mut ChannelSettings) -> Result,
    ) -> Result {
        let _control = self.control.lock();
        let mut settings = self.settings(channel)?;
        let before = settings.selection.try_clone()?;
        change(&mut settings)?;
        let is_new = |event: &Event| settings.selection.has(event) && !before.has(event);
        self.for_each_picked(is_new, |event| self.check_rights(event, rights))?;
        self.check_source("set_event", &settings)?;
        self.record(channel, &settings).inspect_err(|&error| {
            if error == EPERM {
                self.refuse(fmt!("{NOT_PERMITTED}"));
            } else if let Some(why) = aux::refusal(error) {
                self.refuse(fmt!("set_event: {why}"));
            }
        })?;
        let mut state = self.state.lock();
        let place = state.settings.channel_mut(channel)?;
        let before = core::mem::replace(place, settings);
        drop(state);
        drop(before);
        Ok(())
    }

    /// Checks that a channel which takes records from rings has only events of programs. `file` is in the reason of the
    /// refusal.
    pub(in crate::session) fn check_source(
        &self,
        file: &str,
        settings: &ChannelSettings,
    ) -> Result {
        if settings.config.source != RecordSource::Rings {
            return Ok(());
        }
        let is_wrong = |event: &Event| settings.selection.has(event) && !event.source().has_rings();
        self.for_each_picked(is_wrong, |event| {
            let (subsystem, name) = event.full_name();
            Err(self.refuse(fmt!(
                "{file}: a channel whose source is rings cannot record {subsystem}:{name}, which is no event of programs"
            )))
        })?;
        Ok(())
    }

    /// Removes a deleted event from all settings, and its triggers.
    pub(in crate::session) fn forget(&self, event: &Event) {
        let _control = self.control.lock();
        self.forget_triggers(event);
        let mut state = self.state.lock();
        state
            .settings
            .channels_mut()
            .for_each(|channel| channel.forget(event));
    }

    /// Handles new events: enabled ones are recorded from now on. If memory is short, a kernel message reports
    /// that.
    pub(in crate::session) fn events_came(&self) {
        let _control = self.control.lock();
        if self.record_all().is_err() {
            pr_warn!("no memory to record the events of a module that was loaded: they are missing in the trace\n");
        }
    }

    /// Records the selection of all channels, if a trace is active. `control` must be held.
    pub(in crate::session) fn record_all(&self) -> Result {
        let Some((trace, _)) = self.active() else {
            return Ok(());
        };
        for channel in trace.channels() {
            self.record(channel.id(), &self.settings(channel.id())?)?;
        }
        Ok(())
    }

    /// Records the selection in `settings`, if a trace is active. `control` must be held.
    fn record(&self, channel: ChannelId, settings: &ChannelSettings) -> Result {
        let Some((trace, recording)) = self.active() else {
            return Ok(());
        };
        // Events are described before they are recorded: a reader cannot use a record without description.
        let described = trace.channel(channel)?;
        let known = described.numbers();
        let (numbers, grown) = described.describe(&self.available(), &settings.selection)?;
        if grown {
            trace.save_metadata().map_err(|error| {
                described.forget_all_but(known);
                self.refuse_metadata(error)
            })?;
            self.metadata_changes.announce();
        }
        recording.select(channel, settings, &numbers)
    }

    fn settings(&self, channel: ChannelId) -> Result<ChannelSettings> {
        self.look(channel, ChannelSettings::try_clone)?
    }

    fn selection(&self, channel: ChannelId) -> Result<Selection> {
        self.look(channel, |channel| channel.selection.try_clone())?
    }

    /// The events that are recorded if none is selected.
    pub(in crate::session) fn default_selection(&self) -> Result<Selection> {
        let mut selection = Selection::NONE;
        let available = self.available();
        let mut defaults = available.iter().filter(|event| event.source().is_default());
        defaults.try_for_each(|event| selection.set(event, true))?;
        Ok(selection)
    }

    /// Whether none, some or all of the events that `pick` selects are enabled.
    pub(crate) fn enabled(
        &self,
        channel: ChannelId,
        pick: impl Fn(&Event) -> bool,
    ) -> Result<Enabled> {
        let available = self.available();
        self.look(channel, |channel| {
            let picked = available.iter().filter(|event| pick(event));
            picked.map(|event| channel.selection.has(event)).collect()
        })
    }

    /// Whether an event is enabled.
    pub(crate) fn is_enabled(&self, channel: ChannelId, event: &Event) -> Result<bool> {
        self.look(channel, |channel| channel.selection.has(event))
    }

    /// Calls `each` with the name of each enabled event, in the order of their ids, including events of modules that are
    /// not loaded. Then the patterns for events of programs follow.
    pub(in crate::session) fn for_each_enabled(
        &self,
        channel: ChannelId,
        mut each: impl FnMut(core::fmt::Arguments<'_>) -> Result,
    ) -> Result {
        let (selection, standing) = self.look(channel, |channel| {
            Ok::<_, Error>((
                channel.selection.try_clone()?,
                channel.standing.try_clone()?,
            ))
        })??;
        let available = self.available();
        let mut listed = KVVec::new();
        for event in available.known().filter(|event| selection.has(event)) {
            let (subsystem, name) = event.full_name();
            each(format_args!("{subsystem}:{name}"))?;
            listed.push(event.clone(), GFP_KERNEL)?;
        }
        let mut words = standing.beside(&listed);
        words.try_for_each(|word| each(format_args!("{word}")))
    }

    /// The number of enabled events and that of the default ones. [`None`] if they are the same, or no event is
    /// enabled.
    pub(crate) fn differing_events(&self, channel: ChannelId) -> Result<Option<(usize, usize)>> {
        let (selection, defaults) = (self.selection(channel)?, self.default_selection()?);
        let patterns = self.look(channel, |channel| channel.standing.iter().count())?;
        let differ = !selection.is_empty() && selection != defaults || patterns != 0;
        Ok(differ.then(|| (selection.len() + patterns, defaults.len())))
    }
}
