// SPDX-License-Identifier: GPL-2.0

//! The files below /sys/kernel/rtrace and /sys/kernel/debug/rtrace. `Documentation/abi.md`, section "The tree of files",
//! lists them.
//!
//! A session's files that choose events are those of its first channel.

mod aux;
mod channel;
mod control;
mod dynamic;
mod events;
mod latency;
mod map;
mod metadata;
mod parameters;
mod pipe;
mod program;
mod recovered;
mod session;
mod setting;
mod state;
mod stream;
mod subdirs;
mod trigger;
mod unwind;

use crate::event::Event;
use crate::input::number;
use crate::session::{ChannelId, EventFiles, Session, Sessions};
use crate::sys::debugfs::tree::Tree;
use crate::sys::debugfs::Dir;
use channel::ChannelTarget;
use events::AllEventDirs;
use kernel::prelude::*;
use kernel::sync::Arc;
pub(crate) use parameters::apply_parameters;
use session::SessionDirs;

/// All files. The drop removes them, and waits for operations on them.
pub(crate) struct Files {
    events: Arc<AllEventDirs>,
    sessions: SessionDirs,
    _root: Arc<Dir>,
}

impl Files {
    /// Creates the files in `tree`.
    pub(crate) fn new(tree: &Arc<Tree>, sessions: &Arc<Sessions>) -> Result<Arc<Self>> {
        let mut root = Dir::root(tree)?;
        let session = sessions.default();
        let target = ChannelTarget::new(session, ChannelId::FIRST);
        control::make_tracer(&mut root, sessions)?;
        let events = AllEventDirs::new()?;
        dynamic::make(&mut root, sessions)?;
        program::make(&mut root, sessions)?;
        control::make(&mut root, session, true)?;
        let sessions = SessionDirs::new(sessions.clone())?;
        sessions.make_control(&mut root)?;

        let root = Arc::new(root, GFP_KERNEL)?;
        let files = Self {
            events,
            sessions,
            _root: root.clone(),
        };
        let files = Arc::new(files, GFP_KERNEL)?;
        files.events.open(Dir::within(&root, "events")?, target)?;
        files.sessions.set_files(Some(files.events.clone()));
        files.sessions.open(Dir::within(&root, "sessions")?)?;
        Ok(files)
    }

    /// See [`EventFiles::follow`].
    pub(crate) fn follow(&self, event: &Arc<Event>) -> Result {
        self.events.follow(event)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        self.sessions.set_files(None);
        self.events.close();
        self.sessions.close();
    }
}

/// Parses a switch: `0` or `1`.
fn parse_switch(session: &Session, file: &str, input: &str) -> Result<bool> {
    let input = input.trim();
    number::switch(input)
        .ok_or_else(|| session.refuse(fmt!("{file}: '{input}' is neither 0 nor 1")))
}

/// Checks a text that was written to a file with one action: it must be `1`.
fn must_be_one(session: &Session, file: &str, input: &str) -> Result {
    let input = input.trim();
    if input == "1" {
        return Ok(());
    }
    Err(session.refuse(fmt!("{file}: '{input}' is not 1")))
}
