// SPDX-License-Identifier: GPL-2.0

//! `events/`: a switch at every level, and what each event looks like.

use super::parse_switch;
use crate::event::{self, Event};
use crate::session::Session;
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::debugfs::{Dir, Tree, READ, READ_WRITE};
use core::fmt::Write;
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
    session: Arc<Session>,
}

impl EventFiles {
    /// Fills the directory with all that is available.
    pub(super) fn new(tree: &mut Tree, dir: Dir, session: Arc<Session>) -> Result<Self> {
        let mut files = Self {
            dir,
            subsystems: KVec::new(),
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
        let dir = tree.dir(parent, event.name())?;
        let (session, id) = (self.session.clone(), event.id());
        let data = tree.data(One { session, id })?;
        tree.text::<OneEnable>(dir, "enable", READ_WRITE, data)?;
        tree.text::<Format>(dir, "format", READ, data)?;
        tree.text::<Id>(dir, "id", READ, data)
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

struct Id;

impl TextFile for Id {
    type Data = One;

    fn show(one: &One, out: &mut Text) -> Result {
        writeln!(out, "{}", one.id)?;
        Ok(())
    }
}
