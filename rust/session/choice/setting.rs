// SPDX-License-Identifier: GPL-2.0

//! Settings of sessions and channels: the code that all settings share. The [`table`] lists the settings.
//!
//! Files, module parameters, and `reset` derive from the table.

use super::table;
use crate::channel::config::{Config, ConfigRefusal};
use crate::session::{ChannelId, Session};
use crate::sys::debugfs::text::Text;
use crate::sys::privilege::Rights;
use core::fmt::Write;
use core::ops::RangeInclusive;
use kernel::prelude::*;

/// A setting of a session, or of each channel of a session.
pub(crate) struct Setting {
    /// Path of its file, below the directory of the session or channel.
    pub(crate) file: &'static str,
    /// The times at which the setting can change.
    pub(in crate::session) changes: Changes,
    /// The setting's value, and the access to it.
    pub(in crate::session) value: SettingValue,
}

/// The times at which a setting can change.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::session) enum Changes {
    /// At any time, and at once.
    Always,
    /// While no trace is recorded. `control` is held during the change.
    Stopped,
}

/// Value of a setting, and the access to it.
///
/// The functions `set` and `clear` do not lock `control`, because a reset holds it. The function `change` locks it if
/// the list can change at any time; otherwise the caller holds it.
pub(in crate::session) enum SettingValue {
    /// A number of the session.
    Number {
        get: fn(&Session) -> u64,
        set: fn(&Session, u64) -> Result,
        default: u64,
        range: RangeInclusive<u64>,
        /// Completes the message "'TEXT' is ..."; empty: the message names the range.
        otherwise: &'static str,
    },
    /// A name.
    Name {
        /// All names, among which the chosen one is shown in brackets; empty: only the chosen one is shown.
        among: &'static [&'static str],
        get: fn(&Session, ChannelId, &mut Text) -> Result,
        set: fn(&Session, ChannelId, &str) -> Result,
        default: fn() -> &'static str,
    },
    /// A part of the channel's configuration.
    Config {
        get: fn(&Config, &mut Text) -> core::fmt::Result,
        set: fn(Config, &str) -> Result<Config, ConfigRefusal>,
    },
    /// A list of items.
    List {
        /// Whether a byte ends an item, see [`TextFile::ends_item`](crate::sys::debugfs::text::TextFile::ends_item).
        ends_item: Option<fn(u8) -> bool>,
        /// Separator of the items in a module parameter.
        separator: char,
        show: fn(&Session, ChannelId, &mut Text) -> Result,
        /// Adds items; if the flag is set, replaces the list by them.
        change: fn(&Session, ChannelId, &str, Rights, bool) -> Result,
        clear: fn(&Session, ChannelId) -> Result,
        difference: fn(&Session, ChannelId) -> Result<ListDifference>,
    },
}

/// Number of items in a list now, and in its default; [`None`]: the list is the default one.
pub(in crate::session) type ListDifference = Option<(usize, usize)>;

use SettingValue::{List, Name, Number};

impl Setting {
    /// All settings.
    pub(crate) fn all() -> impl Iterator<Item = &'static Self> {
        Iterator::chain(table::SESSION.iter(), table::CHANNEL)
    }

    /// Settings whose files are in the root, or in a session's directory.
    pub(crate) fn of_session(in_root: bool) -> impl Iterator<Item = &'static Self> {
        // The events of a session are those of its first channel.
        let events = Self::of_channel().filter(|setting| setting.file == "set_event");
        let is_there = move |setting: &&Self| !in_root || setting.file != "marker_channel";
        Iterator::chain(table::SESSION.iter().filter(is_there), events)
    }

    /// Settings whose files are in a channel's directory.
    pub(crate) fn of_channel() -> impl Iterator<Item = &'static Self> {
        table::CHANNEL.iter()
    }

    /// Name of the setting's module parameter, if it has one.
    pub(crate) fn parameter(&self) -> &'static str {
        match self.file {
            // The parameter `mode` is the file mode of the directories.
            "mode" => "channel_mode",
            file => file,
        }
    }

    /// See [`TextFile::ends_item`](crate::sys::debugfs::text::TextFile::ends_item).
    pub(crate) fn ends_item(&self) -> Option<fn(u8) -> bool> {
        match self.value {
            List { ends_item, .. } => ends_item,
            _ => None,
        }
    }

    /// Writes the text of the file.
    pub(crate) fn show(&self, session: &Session, channel: ChannelId, out: &mut Text) -> Result {
        match &self.value {
            List { show, .. } => return show(session, channel, out),
            Name { among, .. } if !among.is_empty() => {
                let chosen = Text::new(|chosen| self.get(session, channel, chosen))?;
                for (i, name) in among.iter().enumerate() {
                    let space = if i == 0 { "" } else { " " };
                    match *name == chosen.as_str() {
                        true => write!(out, "{space}[{name}]")?,
                        false => write!(out, "{space}{name}")?,
                    }
                }
            }
            _ => self.get(session, channel, out)?,
        }
        out.write_str("\n")?;
        Ok(())
    }

    /// Handles a text that a file with these rights wrote. With `replace`, the text replaces the items of a list;
    /// otherwise it adds to them. `EBUSY` if a trace is recorded and the setting cannot change meanwhile. On
    /// failure the setting is unchanged.
    pub(crate) fn store(
        &self,
        session: &Session,
        channel: ChannelId,
        input: &str,
        rights: Rights,
        replace: bool,
    ) -> Result {
        let is_list = matches!(self.value, List { .. });
        if replace && input.is_empty() && !is_list {
            return Ok(());
        }
        let stopped = self.changes == Changes::Stopped;
        let _control = stopped.then(|| session.control.lock());
        if stopped {
            session.state.lock().must_be_stopped(self.file)?;
        }
        match self.value {
            List { change, .. } => change(session, channel, input, rights, replace),
            _ => self.set(session, channel, input.trim()),
        }
    }

    /// Handles the value of a module parameter.
    pub(crate) fn store_parameter(&self, session: &Session, value: &str) -> Result {
        let store = |item| self.store(session, ChannelId::FIRST, item, Rights::ALL, false);
        match self.value {
            List { separator, .. } => value.split(separator).try_for_each(store),
            _ => store(value),
        }
    }

    /// Writes the value. Not for a list.
    fn get(&self, session: &Session, channel: ChannelId, out: &mut Text) -> Result {
        match &self.value {
            Number { get, .. } => write!(out, "{}", get(session))?,
            Name { get, .. } => get(session, channel, out)?,
            SettingValue::Config { get, .. } => get(&session.config(channel)?, out)?,
            List { .. } => {}
        }
        Ok(())
    }

    /// Writes the value that a reset restores. Not for a list.
    fn default(&self, session: &Session, out: &mut Text) -> Result {
        match &self.value {
            Number { default, .. } => write!(out, "{default}")?,
            Name { default, .. } => out.write_str(default())?,
            SettingValue::Config { get, .. } => get(&session.shared.defaults, out)?,
            List { .. } => {}
        }
        Ok(())
    }

    /// Parses and sets the value. Not for a list.
    fn set(&self, session: &Session, channel: ChannelId, value: &str) -> Result {
        let file = self.file;
        match &self.value {
            Number {
                set,
                range,
                otherwise,
                ..
            } => {
                let number = value.parse::<u64>().ok();
                let number = number.filter(|number| range.contains(number));
                let number = number.ok_or_else(|| match *otherwise {
                    "" => {
                        let (least, most) = (range.start(), range.end());
                        session.refuse(fmt!(
                            "{file}: '{value}' is not a number from {least} to {most}"
                        ))
                    }
                    otherwise => session.refuse(fmt!("{file}: '{value}' is {otherwise}")),
                })?;
                set(session, number)
            }
            Name { set, .. } => set(session, channel, value),
            SettingValue::Config { set, .. } => {
                let mut state = session.state.lock();
                let config = &mut state.settings.channel_mut(channel)?.config;
                match set(*config, value) {
                    Ok(changed) => *config = changed,
                    Err(refusal) => return Err(state.refuse(fmt!("{file}: {refusal}"))),
                }
                Ok(())
            }
            List { .. } => Ok(()),
        }
    }

    /// Restores the default. `control` is held, and no trace is recorded.
    fn reset(&self, session: &Session, channel: ChannelId) -> Result {
        if let List { clear, .. } = self.value {
            return clear(session, channel);
        }
        let default = Text::new(|default| self.default(session, default))?;
        self.set(session, channel, default.as_str())
    }

    /// Writes file (after `prefix`), value and default, unless the value is the default. For a list, the values
    /// are numbers of items.
    fn write_difference(
        &self,
        prefix: &str,
        session: &Session,
        channel: ChannelId,
        out: &mut Text,
    ) -> Result {
        let file = self.file;
        if let List { difference, .. } = self.value {
            if let Some((count, usual)) = difference(session, channel)? {
                writeln!(out, "{prefix}{file} {count} {usual}")?;
            }
            return Ok(());
        }
        let value = Text::new(|value| self.get(session, channel, value))?;
        let default = Text::new(|default| self.default(session, default))?;
        let (value, default) = (value.as_str(), default.as_str());
        if value != default {
            writeln!(out, "{prefix}{file} {value} {default}")?;
        }
        Ok(())
    }
}

impl Session {
    /// Writes a line for each setting that differs from its default.
    pub(crate) fn write_differences(&self, out: &mut Text) -> Result {
        for setting in table::SESSION {
            setting.write_difference("", self, ChannelId::FIRST, out)?;
        }
        for channel in self.channels() {
            // The settings of the first channel are shown without a prefix, like those of the session.
            let prefix = Text::new(|prefix| {
                if channel != ChannelId::FIRST {
                    let name = self.channel_name(channel)?;
                    write!(prefix, "channels/{}/", name.to_str()?)?;
                }
                Ok(())
            })?;
            for setting in table::CHANNEL {
                setting.write_difference(prefix.as_str(), self, channel, out)?;
            }
        }
        Ok(())
    }

    /// Restores the default of each setting, and clears the measured latencies. `EBUSY` while active. On
    /// `ENOMEM` some settings may be restored already.
    pub(crate) fn reset(&self) -> Result {
        let _control = self.control.lock();
        self.state.lock().must_be_stopped("reset")?;
        for setting in table::SESSION {
            setting.reset(self, ChannelId::FIRST)?;
        }
        for channel in self.channels() {
            for setting in table::CHANNEL {
                setting.reset(self, channel)?;
            }
        }
        self.sources.wakeups.results().reset();
        self.sources.preemptions.results().reset();
        self.sources.timers.results().reset();
        Ok(())
    }
}
