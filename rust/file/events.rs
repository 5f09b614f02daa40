// SPDX-License-Identifier: GPL-2.0

//! `events/`: a switch at every level, and what each event looks like.

use super::parse_switch;
use crate::event::{self, Event, Kind};
use crate::session::Session;
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::debugfs::{Dir, Leaf, Tree, READ, READ_WRITE};
use kernel::prelude::*;
use kernel::sync::Arc;

/// Some of a session's events.
struct Group {
    session: Arc<Session>,
    /// All of a subsystem, or of all subsystems.
    subsystem: Option<&'static str>,
}

/// One of a session's events.
struct One {
    session: Arc<Session>,
    id: u32,
}

/// The directory `events`, to which events can be added.
pub(super) struct EventFiles {
    dir: Dir,
    subsystems: KVec<(&'static str, Dir)>,
    /// Directories of events that may go, by id.
    provided: KVec<(u32, Leaf)>,
    session: Arc<Session>,
}

impl EventFiles {
    /// Fills the directory with all that is available.
    pub(super) fn new(tree: &mut Tree, dir: Dir, session: Arc<Session>) -> Result<Self> {
        let mut files = Self {
            dir,
            subsystems: KVec::new(),
            provided: KVec::new(),
            session,
        };
        files.add_switch(tree, dir, None)?;
        let session = files.session.clone();
        for event in session.available() {
            files.add(tree, &event)?;
        }
        Ok(files)
    }

    /// Makes an event's files.
    pub(super) fn add(&mut self, tree: &mut Tree, event: &Event) -> Result {
        let parent = self.subsystem(tree, event.subsystem())?;
        // Before there is something that would have to be undone.
        self.provided.reserve(1, GFP_KERNEL)?;
        let dir = tree.leaf(parent, event.name())?;
        let made = self.fill(tree, &dir, event.id());
        if made.is_err() {
            tree.remove(dir);
        } else if let Kind::Provided(_) = event.kind() {
            self.provided.push((event.id(), dir), GFP_KERNEL)?;
        }
        made
    }

    fn fill(&self, tree: &mut Tree, dir: &Leaf, id: u32) -> Result {
        let session = self.session.clone();
        let data = tree.leaf_data(dir, One { session, id })?;
        tree.text::<OneEnable>(dir, "enable", READ_WRITE, data)?;
        tree.text::<Format>(dir, "format", READ, data)
    }

    /// Removes the files of an event whose module goes.
    pub(super) fn remove(&mut self, tree: &mut Tree, id: u32) {
        let place = self.provided.iter().position(|(known, _)| *known == id);
        if let Some((_, dir)) = place.and_then(|place| self.provided.remove(place).ok()) {
            tree.remove(dir);
        }
    }

    fn subsystem(&mut self, tree: &mut Tree, name: &'static str) -> Result<Dir> {
        let known = self.subsystems.iter().find(|(known, _)| *known == name);
        if let Some(&(_, dir)) = known {
            return Ok(dir);
        }
        let dir = tree.dir(self.dir, name)?;
        self.add_switch(tree, dir, Some(name))?;
        self.subsystems.push((name, dir), GFP_KERNEL)?;
        Ok(dir)
    }

    fn add_switch(&self, tree: &mut Tree, dir: Dir, subsystem: Option<&'static str>) -> Result {
        let session = self.session.clone();
        let data = tree.data(Group { session, subsystem })?;
        tree.text::<GroupEnable>(dir, "enable", READ_WRITE, data)
    }
}

impl Group {
    fn has(&self, event: &Event) -> bool {
        self.subsystem.is_none_or(|name| event.subsystem() == name)
    }
}

struct GroupEnable;

impl TextFile for GroupEnable {
    type Data = Group;

    fn show(group: &Group, out: &mut Text) -> Result {
        group.session.enabled(|event| group.has(event)).write(out)?;
        Ok(())
    }

    fn store(group: &Group, input: &str) -> Result {
        let enabled = parse_switch(&group.session, "events/.../enable", input)?;
        group.session.set_enabled(|event| group.has(event), enabled)
    }
}

struct OneEnable;

impl TextFile for OneEnable {
    type Data = One;

    fn show(one: &One, out: &mut Text) -> Result {
        let enabled = one.session.enabled(|event| event.id() == one.id);
        enabled.write(out)?;
        Ok(())
    }

    fn store(one: &One, input: &str) -> Result {
        let enabled = parse_switch(&one.session, "events/.../enable", input)?;
        one.session
            .set_enabled(|event| event.id() == one.id, enabled)
    }
}

struct Format;

impl TextFile for Format {
    type Data = One;

    fn show(one: &One, out: &mut Text) -> Result {
        event::format(one.id, out)?;
        Ok(())
    }
}
