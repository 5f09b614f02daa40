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

pub(super) fn make(tree: &mut Tree, dir: Dir, session: &Arc<Session>) -> Result {
    let group = |tree: &mut Tree, dir, subsystem| {
        let session = session.clone();
        let data = tree.data(Group { session, subsystem })?;
        tree.text::<GroupEnable>(dir, "enable", READ_WRITE, data)
    };
    group(tree, dir, None)?;
    let mut subsystems: KVec<(&'static str, Dir)> = KVec::new();
    for event in session.available() {
        let name = event.subsystem();
        let known = subsystems.iter().find(|(known, _)| *known == name);
        let parent = match known {
            Some((_, parent)) => *parent,
            None => {
                let parent = tree.dir(dir, name)?;
                group(tree, parent, Some(name))?;
                subsystems.push((name, parent), GFP_KERNEL)?;
                parent
            }
        };
        make_event(tree, parent, session, &event)?;
    }
    Ok(())
}

fn make_event(tree: &mut Tree, parent: Dir, session: &Arc<Session>, event: &Event) -> Result {
    let dir = tree.dir(parent, event.name())?;
    let (session, id) = (session.clone(), event.id());
    let data = tree.data(One { session, id })?;
    tree.text::<OneEnable>(dir, "enable", READ_WRITE, data)?;
    tree.text::<Format>(dir, "format", READ, data)?;
    tree.text::<Id>(dir, "id", READ, data)
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
