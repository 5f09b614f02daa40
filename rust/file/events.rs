// SPDX-License-Identifier: GPL-2.0

//! `events/`: a switch at each level, and the format of each event. The switches are those of one channel.

use super::channel::ChannelTarget;
use super::parse_switch;
use crate::event::Event;
use crate::input::hist::is_hist;
use crate::session::{Enabled, EventFiles};
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::debugfs::{Dir, READ, READ_WRITE};
use crate::sys::privilege::Rights;
use crate::sys::turn::Turn;
use core::fmt::Write;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::{new_mutex, Arc, Mutex};

/// Some events of a channel.
struct Group {
    target: ChannelTarget,
    /// One subsystem; [`None`] for all.
    subsystem: Option<CString>,
}

/// One event of a channel.
struct One {
    target: ChannelTarget,
    event: Arc<Event>,
}

/// The directory `events`, while it exists. Files beside it may refer to this object; [`close`](Self::close)
/// breaks that cycle.
#[pin_data]
pub(super) struct AllEventDirs {
    /// Taken by each change of the directories: it may wait without limit for a reader of one of them.
    #[pin]
    changing: Turn,
    #[pin]
    dirs: Mutex<Option<EventDirs>>,
}

impl AllEventDirs {
    /// Without the directory.
    pub(super) fn new() -> Result<Arc<Self>> {
        let dirs = pin_init!(Self {
            changing <- Turn::new(),
            dirs <- new_mutex!(None),
        });
        Arc::pin_init(dirs, GFP_KERNEL)
    }

    /// Fills the directory with all available events. May sleep.
    pub(super) fn open(&self, dir: Dir, target: ChannelTarget) -> Result {
        let dirs = EventDirs::new(dir, target)?;
        *self.dirs.lock() = Some(dirs);
        Ok(())
    }

    /// Removes the directory. May sleep.
    pub(super) fn close(&self) {
        let turn = self.changing.take_anyway();
        let dirs = self.dirs.lock().take();
        drop(turn);
        // Dropped without the turn, because an operation on its files may take it.
        drop(dirs);
    }
}

impl EventFiles for AllEventDirs {
    /// `ENOENT`: the directory does not exist.
    fn follow(&self, event: &Arc<Event>) -> Result {
        // A removal cannot be given up.
        let _turn = match event.is_present() {
            true => self.changing.take()?,
            false => self.changing.take_anyway(),
        };
        match &mut *self.dirs.lock() {
            Some(dirs) => dirs.follow(event),
            None if event.is_present() => Err(ENOENT),
            None => Ok(()),
        }
    }
}

struct EventDirs {
    target: ChannelTarget,
    subsystems: KVec<Subsystem>,
    dir: Arc<Dir>,
}

/// The directory of a subsystem.
struct Subsystem {
    name: CString,
    /// Its events, with their directories.
    events: KVVec<(Arc<Event>, Dir)>,
    dir: Arc<Dir>,
}

impl EventDirs {
    /// Fills the directory with all available events.
    fn new(mut dir: Dir, target: ChannelTarget) -> Result<Self> {
        add_switch(&mut dir, &target, None)?;
        let mut dirs = Self {
            target,
            subsystems: KVec::new(),
            dir: Arc::new(dir, GFP_KERNEL)?,
        };
        let available = dirs.target.session.available();
        available.iter().try_for_each(|event| dirs.add(event))?;
        Ok(dirs)
    }

    /// See [`EventFiles::follow`].
    fn follow(&mut self, event: &Arc<Event>) -> Result {
        let has_files = self.find(event).is_some_and(|subsystem| {
            let mut events = subsystem.events.iter();
            events.any(|(known, _)| Arc::ptr_eq(known, event))
        });
        if has_files == event.is_present() {
            return Ok(());
        }
        // A present event may replace one of the same name, which is not present.
        self.remove(event);
        if !event.is_present() {
            return Ok(());
        }
        let added = self.add(event);
        if added.is_err() {
            // The directory of its subsystem may have no events.
            self.remove(event);
        }
        added
    }

    /// The directory of an event's subsystem.
    fn find(&self, event: &Event) -> Option<&Subsystem> {
        let name = event.subsystem().as_bytes();
        let mut subsystems = self.subsystems.iter();
        subsystems.find(|subsystem| subsystem.name.to_bytes() == name)
    }

    /// Creates an event's directory. May sleep.
    fn add(&mut self, event: &Arc<Event>) -> Result {
        let target = self.target.clone();
        let subsystem = self.subsystem(event.subsystem())?;
        let mut dir = Dir::within(&subsystem.dir, event.name())?;
        let data = dir.data(One {
            target,
            event: event.clone(),
        })?;
        dir.text::<OneEnable>("enable", READ_WRITE, data)?;
        dir.text::<OneFilter>("filter", READ_WRITE, data)?;
        dir.text::<OneTrigger>("trigger", READ_WRITE, data)?;
        dir.text::<OneHist>("hist", READ, data)?;
        dir.text::<Format>("format", READ, data)?;
        subsystem.events.push((event.clone(), dir), GFP_KERNEL)?;
        Ok(())
    }

    /// Removes the directory of an event, or of another one of its name, if there is one, and waits for operations on its
    /// files. May sleep.
    fn remove(&mut self, event: &Event) {
        let name = event.subsystem().as_bytes();
        let mut subsystems = self.subsystems.iter();
        let Some(at) = subsystems.position(|subsystem| subsystem.name.to_bytes() == name) else {
            return;
        };
        if let Some(subsystem) = self.subsystems.get_mut(at) {
            let is_called = |known: &Event| known.name() == event.name();
            subsystem.events.retain(|(known, _)| !is_called(known));
            if subsystem.events.is_empty() {
                let _ = self.subsystems.remove(at);
            }
        }
    }

    fn subsystem(&mut self, name: &str) -> Result<&mut Subsystem> {
        let is_called = |known: &Subsystem| known.name.to_bytes() == name.as_bytes();
        let at = match self.subsystems.iter().position(is_called) {
            Some(at) => at,
            None => {
                let mut dir = Dir::within(&self.dir, name)?;
                let name = CString::try_from_fmt(fmt!("{name}"))?;
                add_switch(&mut dir, &self.target, Some(&name))?;
                self.subsystems.push(
                    Subsystem {
                        name,
                        events: KVVec::new(),
                        dir: Arc::new(dir, GFP_KERNEL)?,
                    },
                    GFP_KERNEL,
                )?;
                self.subsystems.len() - 1
            }
        };
        self.subsystems.get_mut(at).ok_or(ENOENT)
    }
}

fn add_switch(dir: &mut Dir, target: &ChannelTarget, subsystem: Option<&CStr>) -> Result {
    let target = target.clone();
    let subsystem = subsystem.map(CString::try_from).transpose()?;
    let is_subsystem = subsystem.is_some();
    let data = dir.data(Group { target, subsystem })?;
    if is_subsystem {
        dir.text::<GroupFilter>("filter", READ_WRITE, data)?;
    }
    dir.text::<GroupEnable>("enable", READ_WRITE, data)
}

impl Group {
    fn has(&self, event: &Event) -> bool {
        let name = self.subsystem.as_ref();
        name.is_none_or(|name| event.subsystem().as_bytes() == name.to_bytes())
    }
}

struct GroupEnable;

impl TextFile for GroupEnable {
    type Data = Group;

    fn show(group: &Group, out: &mut Text) -> Result {
        let ChannelTarget { session, channel } = &group.target;
        let enabled = session.enabled(*channel, |event| group.has(event))?;
        enabled.write(out)?;
        Ok(())
    }

    fn store(group: &Group, input: &str, rights: Rights) -> Result {
        let ChannelTarget { session, channel } = &group.target;
        let enabled = parse_switch(session, "events/.../enable", input)?;
        let subsystem = group.subsystem.as_ref().map(|name| name.to_str());
        session.set_all_enabled(*channel, subsystem.transpose()?, enabled, rights)
    }
}

/// Sets the filter of all events of a subsystem that have the filter's fields.
struct GroupFilter;

impl TextFile for GroupFilter {
    type Data = Group;

    /// The text of ftrace.
    fn show(_: &Group, out: &mut Text) -> Result {
        out.write_str("### global filter ###\n# Use this to set filters for multiple events.\n# Only events with the given fields will be affected.\n# If no events are modified, an error message will be displayed here\n")?;
        Ok(())
    }

    fn store(group: &Group, input: &str, rights: Rights) -> Result {
        let ChannelTarget { session, channel } = &group.target;
        let picks = |event: &Event| group.has(event);
        session.filter_events(*channel, "filter", picks, input, rights)
    }
}

/// The filter of an event.
struct OneFilter;

impl TextFile for OneFilter {
    type Data = One;

    fn show(one: &One, out: &mut Text) -> Result {
        let ChannelTarget { session, channel } = &one.target;
        session.write_filter(*channel, &one.event, out)
    }

    fn store(one: &One, input: &str, rights: Rights) -> Result {
        let ChannelTarget { session, channel } = &one.target;
        let picks = |event: &Event| event.id() == one.event.id();
        session.filter_events(*channel, "filter", picks, input, rights)
    }
}

/// The triggers of an event.
struct OneTrigger;

impl TextFile for OneTrigger {
    type Data = One;

    fn show(one: &One, out: &mut Text) -> Result {
        one.target.session.write_triggers_of(&one.event, out)
    }

    fn store(one: &One, input: &str, rights: Rights) -> Result {
        let session = &one.target.session;
        if is_hist(input) {
            return session.set_hist(&one.event, input, rights);
        }
        let is_it = |event: &Event| event.id() == one.event.id();
        session.trigger_events("trigger", is_it, None, input, rights)
    }
}

/// The entries of an event's histograms.
struct OneHist;

impl TextFile for OneHist {
    type Data = One;

    fn show(one: &One, out: &mut Text) -> Result {
        one.target.session.write_hists(&one.event, out)
    }
}

struct OneEnable;

impl TextFile for OneEnable {
    type Data = One;

    fn show(one: &One, out: &mut Text) -> Result {
        let ChannelTarget { session, channel } = &one.target;
        let enabled: Enabled = [session.is_enabled(*channel, &one.event)?]
            .into_iter()
            .collect();
        enabled.write(out)?;
        Ok(())
    }

    fn store(one: &One, input: &str, rights: Rights) -> Result {
        let ChannelTarget { session, channel } = &one.target;
        let enabled = parse_switch(session, "events/.../enable", input)?;
        session.set_enabled(*channel, &one.event, enabled, rights)
    }
}

struct Format;

impl TextFile for Format {
    type Data = One;

    fn show(one: &One, out: &mut Text) -> Result {
        one.event.write_format(out)?;
        Ok(())
    }
}
